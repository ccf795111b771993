//! Where labels stand, so that none lies on another.

use std::ops::Range;

/// One place for each of these centres and extents along a line, as near to where they want to
/// be as it goes without one lying on another. They stay within `bounds` as long as they fit.
pub fn apart(wanted: &[(f64, f64)], bounds: &Range<f64>) -> Vec<f64> {
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by(|&one, &other| wanted[one].0.total_cmp(&wanted[other].0));
    let mut groups: Vec<Group> = Vec::new();
    for index in order {
        let (centre, extent) = wanted[index];
        let mut group = Group { members: vec![index], starts: centre - extent / 2.0, extent };
        while let Some(before) = groups.pop_if(|before| before.end(bounds) > group.start(bounds)) {
            group = before.joined(group);
        }
        groups.push(group);
    }
    let mut places = vec![0.0; wanted.len()];
    for group in &groups {
        let mut start = group.start(bounds);
        for &index in &group.members {
            places[index] = start + wanted[index].1 / 2.0;
            start += wanted[index].1;
        }
    }
    places
}

/// Labels that touch one another.
struct Group {
    members: Vec<usize>,
    /// The sum of where its members want the group to start.
    starts: f64,
    extent: f64,
}

impl Group {
    fn start(&self, bounds: &Range<f64>) -> f64 {
        let wanted = self.starts / self.members.len() as f64;
        wanted.min(bounds.end - self.extent).max(bounds.start)
    }

    fn end(&self, bounds: &Range<f64>) -> f64 {
        self.start(bounds) + self.extent
    }

    fn joined(mut self, other: Self) -> Self {
        // What follows wants the group to start further in front.
        self.starts += other.starts - self.extent * other.members.len() as f64;
        self.extent += other.extent;
        self.members.extend(other.members);
        self
    }
}

/// A rectangle, in pixels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Area {
    /// Its left side.
    pub left: f64,
    /// Its upper side.
    pub top: f64,
    /// Its width.
    pub width: f64,
    /// Its height.
    pub height: f64,
}

impl Area {
    /// Whether the two have a part in common.
    pub fn meets(self, other: Self) -> bool {
        self.left < other.left + other.width
            && other.left < self.left + self.width
            && self.top < other.top + other.height
            && other.top < self.top + self.height
    }

    /// Whether it has a point.
    pub fn has(self, (x, y): (f64, f64)) -> bool {
        (self.left..self.left + self.width).contains(&x) && (self.top..self.top + self.height).contains(&y)
    }
}

/// A place for a label of this size near a point: on no other label if there is such a place,
/// and on as few of the drawn points as it goes. The nearest of equal ones.
pub fn beside(
    (x, y): (f64, f64),
    (width, height): (f64, f64),
    taken: &[Area],
    drawn: &[(f64, f64)],
    bounds: Area,
) -> Area {
    let (mut best, mut least) = (Area { left: x, top: y, width, height }, f64::INFINITY);
    for ring in 1..=MAX_RINGS {
        for (across, down) in DIRECTIONS {
            let far = f64::from(ring) * height;
            let left = x + across * (far + width / 2.0) - width / 2.0;
            let place = Area { left, top: y + down * far - height / 2.0, width, height };
            let cost = cost(place, taken, drawn, bounds) + f64::from(ring) * RING_COST;
            if cost < least {
                (best, least) = (place, cost);
            }
        }
    }
    best
}

/// How far labels go from their points, in heights of their own.
const MAX_RINGS: u32 = 6;
/// What it costs to be a height further away, in points of lines that it lies on.
const RING_COST: f64 = 1.5;
/// To the right, above, below, and between.
const DIRECTIONS: [(f64, f64); 8] =
    [(1.0, 0.0), (0.0, -1.0), (0.0, 1.0), (1.0, -1.0), (1.0, 1.0), (-1.0, -1.0), (-1.0, 1.0), (-1.0, 0.0)];
/// More than any number of points of lines.
const FORBIDDEN: f64 = 1e6;

fn cost(place: Area, taken: &[Area], drawn: &[(f64, f64)], bounds: Area) -> f64 {
    let is_inside = place.left >= bounds.left
        && place.top >= bounds.top
        && place.left + place.width <= bounds.left + bounds.width
        && place.top + place.height <= bounds.top + bounds.height;
    let outside = if is_inside { 0.0 } else { FORBIDDEN };
    let on_labels = taken.iter().filter(|other| other.meets(place)).count() as f64;
    let on_lines = drawn.iter().filter(|&&point| place.has(point)).count() as f64;
    outside + on_labels * FORBIDDEN + on_lines
}

#[cfg(test)]
#[path = "labels_tests.rs"]
mod tests;
