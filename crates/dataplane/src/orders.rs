//! What the packet loop does on orders of the main loop.

use std::sync::mpsc::TryRecvError;

use windtunnel_engine::{Engine, RecordSettings};
use windtunnel_model::Time;
use windtunnel_sys::limits;

use super::change::{advance, apply};
use super::message::{PacketLoopCommand, PacketLoopEvent};
use super::remote::RemoteMachines;
use super::schedule::{ChangeOrigin, ChangeSchedule};
use super::services::{RedirectedAtEnd, RedirectionsNow};
use super::{PacketLoop, SETTLE, kernel_drops, new_engine};
use crate::clock::now;
use crate::owners::FlowOwnerThread;

impl PacketLoop {
    pub(super) fn take_orders(&mut self) {
        loop {
            match self.orders.try_recv() {
                Ok(PacketLoopCommand::Begin(origin)) => self.begin(origin),
                Ok(PacketLoopCommand::Change { id, at: Some(at), action }) => {
                    self.schedule.add(at, ChangeOrigin::Order(id), *action);
                }
                Ok(PacketLoopCommand::Change { id, at: None, action }) => {
                    let at = self.arrivals.not_before(now());
                    self.catch_up(at);
                    apply(&mut self.engine, &mut self.sampler, at, &action);
                    self.note(PacketLoopEvent::Applied {
                        cause: ChangeOrigin::Order(id),
                        intended: at,
                        at,
                    });
                }
                Ok(PacketLoopCommand::Confirm { done }) => {
                    // That nothing waits for it any more is no matter.
                    let _ = done.send(());
                }
                Ok(PacketLoopCommand::Services { one, done }) => {
                    let plan = &self.setup.plan;
                    let origin = self.sampler.origin();
                    let mut now = RedirectionsNow::of(&mut self.engine, plan, origin, one);
                    if let Some(at_end) = &self.redirected_at_end {
                        now.all = at_end.all();
                    }
                    let _ = done.send(now);
                }
                Ok(PacketLoopCommand::Flows { member, changes }) => {
                    self.at_present(|remote, at, engine| {
                        remote.handle_flows(at, member, &changes, engine);
                    });
                }
                Ok(PacketLoopCommand::Forget { member }) => {
                    self.at_present(|remote, at, engine| remote.forget(at, member, engine));
                }
                Ok(PacketLoopCommand::Clocks { ahead_ns }) => {
                    self.remote.iter_mut().for_each(|remote| remote.set_clocks(&ahead_ns));
                }
                Ok(PacketLoopCommand::Record { settings, done }) => {
                    self.record(settings.map(|settings| *settings));
                    let _ = done.send(());
                }
                Ok(PacketLoopCommand::Capture { tap, done }) => {
                    self.taps.add(*tap);
                    let _ = done.send(());
                }
                Ok(PacketLoopCommand::Receive(queue)) => self.receivers.add(*queue),
                Ok(PacketLoopCommand::EndCapture(id)) => self.taps.end(id),
                Ok(PacketLoopCommand::End) => self.end(),
                Ok(PacketLoopCommand::Close) => self.close(),
                Ok(PacketLoopCommand::Finish { await_datagrams }) => {
                    self.last = Some((await_datagrams, now() + SETTLE));
                    return;
                }
                Err(TryRecvError::Disconnected) => {
                    self.finished = true;
                    return;
                }
                Err(TryRecvError::Empty) => return,
            }
        }
    }

    /// Takes what has been found of owners of flows.
    pub(super) fn take_owners(&mut self) {
        while let Some(answer) = self.owners.as_ref().and_then(FlowOwnerThread::answer) {
            let at = self.arrivals.not_before(now());
            self.catch_up(at);
            self.engine.answer_flow(at, answer.lane, &answer.key, answer.class);
            self.senders.note(&self.setup.plan, &answer);
        }
    }

    /// Lets everything catch up, and then does something about other machines.
    fn at_present(&mut self, what: impl FnOnce(&mut RemoteMachines, Time, &mut Engine)) {
        let at = self.arrivals.not_before(now());
        self.catch_up(at);
        if let Some(remote) = &mut self.remote {
            what(remote, at, &mut self.engine);
        }
    }

    pub(super) fn catch_up(&mut self, at: Time) {
        let PacketLoop { engine, schedule, sampler, notes, setup, .. } = self;
        advance(engine, schedule, sampler, at, notes, &setup.notify);
    }

    /// Records something else from now on.
    fn record(&mut self, settings: Option<RecordSettings>) {
        let at = self.arrivals.not_before(now());
        self.catch_up(at);
        self.records.choose(settings, &mut self.engine);
        self.records.hand_over(&mut self.engine);
    }

    /// The run is over, and programs are about to be ended: what the machine does not keep up with
    /// while thousands of connections are torn down at once says nothing of the run.
    fn end(&mut self) {
        let at = self.arrivals.not_before(now());
        self.catch_up(at);
        let drops = kernel_drops(&self.socket);
        self.sampler.end(at, drops, &self.engine);
        self.at_end.get_or_insert(self.own_counts());
        let PacketLoop { engine, setup, redirected_at_end, .. } = self;
        redirected_at_end.get_or_insert_with(|| RedirectedAtEnd::of(engine, &setup.plan));
    }

    /// From now on nothing goes to other machines.
    fn close(&mut self) {
        let sent = self.remote.as_mut().map(|remote| remote.close(now()));
        self.note(PacketLoopEvent::Closed { sent: sent.unwrap_or_default() });
    }

    pub(super) fn finish_when_all_came(&mut self, now: Time) {
        let Some((awaited, until)) = &self.last else { return };
        let has_all = self.remote.as_ref().is_none_or(|remote| remote.has_all(awaited));
        self.finished |= has_all || now >= *until;
    }

    fn begin(&mut self, origin: Time) {
        self.engine = new_engine(&self.setup, self.remote.as_ref());
        self.engine.start_traces(origin);
        self.records.begin(&mut self.engine);
        let at = self.arrivals.not_before(now());
        let engine = &mut self.engine;
        let over = self.remote.as_mut().map(|remote| remote.begin(at, origin, engine));
        self.announce_flows(over.unwrap_or_default());
        self.schedule = ChangeSchedule::new(&self.setup.plan, origin);
        // Reading resets the count.
        let _ = kernel_drops(&self.socket);
        self.sampler.begin(origin);
        self.refused = 0;
        self.schedule_before = limits::schedule_of(limits::current_thread()).unwrap_or_default();
        self.receivers.reset();
        self.overload.begin(origin);
    }
}
