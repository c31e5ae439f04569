//! A virtual world for tests: a network file, scripted endpoints, and time that jumps.
//!
//! Promises: the same file and endpoints give the same packets in every run; nothing waits.
//! Refuses: to ship (it is a workshop), to sleep, to read a clock.
//!
//! | module | content |
//! | --- | --- |
//! | [`world`] | [`World`]: the engine with its nodes, in virtual time |
//! | [`wire`] | [`Wire`]: between machines that have parts of one network |
//! | [`endpoint`] | [`SimulatedEndpoint`], and [`ConstantRateSender`], [`RenoSender`], [`RenoReceiver`], [`UdpEchoServer`] |
//! | [`rng`] | [`SimulationRng`]: choices from a seed |
//! | [`fuzzing`] | fuzzers' inputs in plain tests; all that there is without the feature `world` |
//! | [`mesh`] | [`MeshWorld`]: agents of the mesh on machines with clocks of their own |
//!
//! ```
//! use windtunnel_simlab::{UdpEchoServer, World, ms};
//!
//! let text = "nodes: {a: {}, b: {}}\nlinks: [{between: [a, b], latency: 10ms}]\n";
//! let mut world = World::new(text);
//! world.attach("b", UdpEchoServer);
//! let hello = world.udp("a", "b", b"hello");
//! world.at(ms(5)).send("a", hello);
//! world.run_until(ms(100));
//! assert_eq!(world.deliveries("a")[0].at, ms(25));
//! ```

#[cfg(feature = "world")]
pub mod endpoint;
pub mod fuzzing;
#[cfg(feature = "world")]
pub mod mesh;
#[cfg(feature = "world")]
pub mod rng;
#[cfg(feature = "world")]
pub mod wire;
#[cfg(feature = "world")]
pub mod world;

#[cfg(feature = "world")]
pub use self::{
    endpoint::{
        ConstantRateSender, EndpointActions, RenoReceiver, RenoSender, SimulatedEndpoint,
        UdpEchoServer,
    },
    mesh::{LinkConditions, MeshWorld},
    rng::SimulationRng,
    wire::Wire,
    world::{FrameDelivery, World, WorldInstant, ms},
};
