//! Generalised processor sharing, in which all classes that have something are served at once: what
//! packets can only come close to (Parekh and Gallager 1993). Written from its definition, for
//! comparison.

/// The bytes that came for each class, and the bytes that each had been served, at any time.
pub(super) struct Fluid {
    /// By class: its part of the rate.
    shares: Vec<f64>,
    backlog: Vec<f64>,
    served: Vec<f64>,
    /// In bytes that the link could have sent.
    now: f64,
}

impl Fluid {
    pub(super) fn new(shares: &[f64]) -> Self {
        let none = vec![0.0; shares.len()];
        Fluid { shares: shares.to_vec(), backlog: none.clone(), served: none, now: 0.0 }
    }

    pub(super) fn arrive(&mut self, at: f64, class: usize, bytes: f64) {
        self.advance(at);
        self.backlog[class] += bytes;
    }

    /// Bytes of each class that have been served at a time.
    pub(super) fn served_at(&mut self, at: f64) -> &[f64] {
        self.advance(at);
        &self.served
    }

    fn advance(&mut self, to: f64) {
        while self.now < to {
            let busy = |class: &usize| self.backlog[*class] > 0.0;
            let classes: Vec<usize> = (0..self.shares.len()).filter(busy).collect();
            let sum: f64 = classes.iter().map(|class| self.shares[*class]).sum();
            // Until the next class has been served, or `to`.
            let ends = classes.iter().map(|class| self.backlog[*class] * sum / self.shares[*class]);
            let step = ends.fold(to - self.now, f64::min);
            for class in classes {
                let part = step * self.shares[class] / sum;
                self.served[class] += part;
                let left = self.backlog[class] - part;
                self.backlog[class] = if left < 1e-6 { 0.0 } else { left };
            }
            self.now = if to - self.now - step < 1e-9 { to } else { self.now + step };
        }
    }
}
