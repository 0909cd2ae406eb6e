//! Logarithms and the like, the same to the last bit on every machine.
//!
//! The standard library's come from the platform's C library, and differ between platforms in the
//! last digit; a run is the same everywhere only if they do not.

/// Returns the natural logarithm.
pub fn ln(x: f64) -> f64 {
    libm::log(x)
}

/// Returns e to the power `x`.
pub fn exp(x: f64) -> f64 {
    libm::exp(x)
}

/// Returns the cosine of `x` radians.
pub fn cos(x: f64) -> f64 {
    libm::cos(x)
}

/// Returns `base` to the power `exponent`.
pub fn pow(base: f64, exponent: f64) -> f64 {
    libm::pow(base, exponent)
}
