//! Laws over whole frames.
