//! The curve of gamma, by nonlinear least squares (Marquardt, 1963).

use levenberg_marquardt::{LeastSquaresProblem, LevenbergMarquardt};
use lmt_selector::contention::Quadratic;
use nalgebra::{Dyn, Matrix, OMatrix, OVector, Owned, U2, VecStorage, Vector2};

/// With fewer there is nothing to fit: the curve has two numbers.
pub const MIN_POINTS: usize = 3;

/// The curve that comes nearest to factors measured with 1, 2, ... readers; nothing
/// if they are too few, or do not lead to one.
///
/// What counts is by which part the curve differs from a factor, since the largest
/// would otherwise be all that does. The two numbers are squares of what is
/// fitted: neither is negative, for more readers never wait less.
pub fn fit(measured: &[f64]) -> Option<Quadratic> {
    if measured.len() < MIN_POINTS {
        return None;
    }
    let problem = Problem { measured: measured.to_vec(), roots: Vector2::new(0.3, 1.0) };
    let (problem, report) = LevenbergMarquardt::new().minimize(problem);
    let Quadratic { squared, linear } = problem.curve();
    let is_found = report.termination.was_successful() && squared.is_finite() && linear.is_finite();
    is_found.then_some(Quadratic { squared, linear })
}

struct Problem {
    measured: Vec<f64>,
    /// Of the curve's numbers.
    roots: Vector2<f64>,
}

impl Problem {
    fn curve(&self) -> Quadratic {
        Quadratic { squared: self.roots.x.powi(2), linear: self.roots.y.powi(2) }
    }

    /// Each number of readers with what was measured.
    fn points(&self) -> impl Iterator<Item = (f64, f64)> {
        self.measured.iter().enumerate().map(|(at, factor)| ((at + 1) as f64, factor.max(f64::MIN_POSITIVE)))
    }
}

impl LeastSquaresProblem<f64, Dyn, U2> for Problem {
    type ResidualStorage = VecStorage<f64, Dyn, nalgebra::U1>;
    type JacobianStorage = Owned<f64, Dyn, U2>;
    type ParameterStorage = Owned<f64, U2>;

    fn set_params(&mut self, roots: &Vector2<f64>) {
        self.roots = *roots;
    }

    fn params(&self) -> Vector2<f64> {
        self.roots
    }

    fn residuals(&self) -> Option<OVector<f64, Dyn>> {
        let curve = self.curve();
        let residuals = self.points().map(|(readers, factor)| curve.at(readers) / factor - 1.0);
        Some(OVector::<f64, Dyn>::from_iterator(self.measured.len(), residuals))
    }

    fn jacobian(&self) -> Option<Matrix<f64, Dyn, U2, Self::JacobianStorage>> {
        let mut jacobian = OMatrix::<f64, Dyn, U2>::zeros(self.measured.len());
        for (row, (readers, factor)) in self.points().enumerate() {
            jacobian[(row, 0)] = 2.0 * self.roots.x * readers * readers / factor;
            jacobian[(row, 1)] = 2.0 * self.roots.y * readers / factor;
        }
        Some(jacobian)
    }
}

#[cfg(test)]
#[path = "fit_tests.rs"]
mod tests;
