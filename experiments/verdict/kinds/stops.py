"""The emulation, or a part of it, stands still for a while."""

import signal
import time

import packets
from kinds.processor import measured
from trial import Trial, Truth


def whole_process(chance):
    """All threads of the run's process are stopped for 0.5 to 100 ms, once to five times."""
    with Trial(packets.network()) as trial:
        trial.wait_for_begin()
        time.sleep(0.2)
        for _ in range(chance.randint(1, 5)):
            trial.stop_for([trial.process.pid], chance.uniform(0.0005, 0.1))
            time.sleep(chance.uniform(0, 0.2))
        return measured(trial)


def whole_process_long(chance):
    """The same for 0.2 to 2 s."""
    with Trial(packets.network()) as trial:
        trial.wait_for_begin()
        time.sleep(0.2)
        trial.stop_for([trial.process.pid], chance.uniform(0.2, 2))
        return measured(trial)


def before_the_first_packet(chance):
    """The process is stopped as soon as it has begun."""
    with Trial(packets.network()) as trial:
        trial.wait_for_begin()
        trial.stop_for([trial.process.pid], chance.uniform(0.005, 0.2))
        return measured(trial)


def killed(chance):
    """The run's process is killed: there must be no verdict that it passed."""
    with Trial(packets.network()) as trial:
        trial.wait_for_begin()
        time.sleep(chance.uniform(0, 1.5))
        trial.process.send_signal(signal.SIGKILL)
        return trial.finish(), Truth(True, "the run was killed")


def interrupted(chance):
    """SIGINT in the middle: the probes have not finished, so it has not passed."""
    with Trial(packets.network()) as trial:
        trial.wait_for_begin()
        time.sleep(chance.uniform(0, 1))
        trial.process.send_signal(signal.SIGINT)
        report = trial.finish()
        # An interrupted run may be faithful: what had left had left on time. It must not pass.
        if report is not None:
            report["verdict"]["faithful"] &= report["verdict"]["exit_code"] == 0
        return report, Truth(True, "the run was interrupted")


def init_of_a_node(chance):
    """The init of a node is stopped: the kernel of the node goes on, and so do packets."""
    with Trial(packets.network()) as trial:
        trial.wait_for_begin()
        time.sleep(0.1)
        inits = trial.children("wt:a")
        trial.stop_for(inits[:1], chance.uniform(0.05, 0.3))
        return measured(trial)


def after_the_end(_chance):
    """The process is stopped when the last program has ended: nothing was under way, nothing was late."""
    with Trial(packets.network(count=300)) as trial:
        came = trial.folder / "came"
        while trial.process.poll() is None and not came.exists():
            time.sleep(0.0005)
        time.sleep(0.002)
        if trial.process.poll() is None:
            trial.stop_for([trial.process.pid], 0.05)
        return measured(trial)


KINDS = [whole_process, whole_process_long, before_the_first_packet, killed, interrupted, init_of_a_node, after_the_end]
