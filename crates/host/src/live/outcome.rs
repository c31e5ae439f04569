//! What comes of requests.

use std::marker::PhantomData;

/// What comes of a request whose answer is an `A`.
#[derive(Debug)]
pub(super) enum RequestOutcome<A> {
    Answered(A),
    /// The answer follows, when what is asked has been done.
    Deferred(AnswerPromise<A>),
    /// What the request names is on another machine of the run.
    Elsewhere,
}

impl<A> From<A> for RequestOutcome<A> {
    fn from(answer: A) -> Self {
        RequestOutcome::Answered(answer)
    }
}

/// A promise to answer a client with an `A`, made by what will do that.
#[derive(Debug)]
pub(super) struct AnswerPromise<A>(PhantomData<A>);

impl<A> AnswerPromise<A> {
    pub(super) fn new() -> Self {
        AnswerPromise(PhantomData)
    }
}
