//! The streams of a question that an agent answers.

use std::io;
use std::marker::PhantomData;
use std::net::SocketAddr;

use quinn::SendStream;

use crate::protocol::AgentReply;
use crate::protocol::answers::AgentAnswer;
use crate::stream;
use crate::stream_limit::CountedStream;

/// A question's streams, and who asks.
#[derive(Debug)]
pub(crate) struct AgentCallStreams {
    pub(crate) from: SocketAddr,
    pub(crate) to: SendStream,
    /// What follows the question.
    pub(crate) rest: CountedStream,
}

/// A question that is to be answered with an `A`, or with several.
#[derive(Debug)]
pub(crate) struct AgentCall<A> {
    pub(crate) from: SocketAddr,
    pub(crate) to: AnswerSender<A>,
    /// What follows the question.
    pub(crate) rest: CountedStream,
}

/// Where answers to a question go.
#[derive(Debug)]
pub(crate) struct AnswerSender<A> {
    to: SendStream,
    answer: PhantomData<A>,
}

impl<A: AgentAnswer> AgentCall<A> {
    pub(crate) fn on(streams: AgentCallStreams) -> Self {
        let AgentCallStreams { from, to, rest } = streams;
        AgentCall { from, to: AnswerSender { to, answer: PhantomData }, rest }
    }

    /// Sends the only answer, or why there is none. The call has its place among the streams of its
    /// connection until then.
    pub(crate) async fn finish(self, answer: Result<A, String>) {
        let AgentCall { to, rest: _counted, .. } = self;
        to.finish(answer).await;
    }
}

impl<A: AgentAnswer> AnswerSender<A> {
    /// Sends the last answer, or why there is none. If that fails, the client has gone.
    pub(crate) async fn finish(mut self, answer: Result<A, String>) {
        let _ = self.say(answer).await;
        let _ = self.to.finish();
    }

    /// Sends an answer, or why there is none.
    pub(crate) async fn say(&mut self, answer: Result<A, String>) -> io::Result<()> {
        let reply = match answer {
            Ok(answer) => answer.into_reply(),
            Err(message) => AgentReply::Error { message },
        };
        stream::send(&mut self.to, &reply).await
    }

    /// Sends bytes that belong to an answer.
    pub(crate) async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        Ok(self.to.write_all(bytes).await?)
    }

    /// There are no further answers.
    pub(crate) fn end(mut self) {
        let _ = self.to.finish();
    }

    /// The stream, for another conversation after the answer.
    pub(crate) fn into_stream(self) -> SendStream {
        self.to
    }
}
