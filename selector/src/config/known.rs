//! The mechanisms that there are, and who knows the names of collective operations,
//! as far as a configuration speaks of them.

use lmt_core::config_key::{Key, Value};
use lmt_core::mechanism::{Description, Mechanisms, Model};
use lmt_core::selection::PathName;

use crate::collectives::CheckRule;

/// What a configuration may say of one mechanism.
#[derive(Clone, Debug)]
pub struct MechanismFacts {
    /// Its name.
    pub name: &'static str,
    /// The models it can do.
    pub models: &'static [Model],
    /// What can be set of it.
    pub keys: &'static [Key],
    /// What each of `keys` is where nothing is set.
    pub defaults: Vec<Value>,
}

/// What a process has.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// They, in order.
    pub mechanisms: Vec<MechanismFacts>,
    /// Who knows the operations and algorithms of `[[collective]]`. Where nobody does,
    /// any names are taken, and refused by who makes a group, as is what is wrong with
    /// such rules otherwise: the whole group hears of it then.
    pub collectives: Option<CheckRule>,
}

impl Known {
    /// Those that are registered, before anything of them was set; of several
    /// with one name the first.
    pub fn of(mechanisms: &mut Mechanisms) -> Self {
        let keys = mechanisms.keys();
        let facts = mechanisms.descriptions().into_iter().map(|Description { name, models, .. }| {
            let keys = keys.iter().find(|(of, _)| *of == name).map_or(&[][..], |(_, keys)| keys);
            let default = |key: &Key| mechanisms.get(name, key.name).unwrap_or(Value::Absent);
            let defaults = keys.iter().map(default).collect();
            MechanismFacts { name, models, keys, defaults }
        });
        Self::default().and(facts)
    }

    /// The same, with rules of collective operations checked.
    #[must_use]
    pub fn with_collectives(self, check: CheckRule) -> Self {
        Self { collectives: Some(check), ..self }
    }

    /// With those of `others` whose name is not among these, behind them.
    pub fn and(mut self, others: impl IntoIterator<Item = MechanismFacts>) -> Self {
        for facts in others {
            if self.mechanisms.iter().all(|known| known.name != facts.name) {
                self.mechanisms.push(facts);
            }
        }
        self
    }

    /// The names of mechanisms and families: a family is what several names
    /// have in common before a hyphen.
    pub fn names(&self) -> Vec<&'static str> {
        let mut names: Vec<&'static str> = self.mechanisms.iter().map(|facts| facts.name).collect();
        for facts in &self.mechanisms {
            for (at, _) in facts.name.match_indices('-') {
                let family = &facts.name[..at];
                if !names.contains(&family) {
                    names.push(family);
                }
            }
        }
        names
    }

    /// A mechanism's name, for help by an example.
    pub(super) fn example(&self) -> &'static str {
        self.mechanisms.first().map_or("NAME", |facts| facts.name)
    }

    /// The mechanisms that a name means: one, or those of a family.
    pub fn meant<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a MechanismFacts> {
        let way = PathName { name: name.to_owned(), model: None };
        self.mechanisms.iter().filter(move |facts| !way.name.is_empty() && way.means_mechanism(facts.name))
    }
}

impl MechanismFacts {
    /// The variable of the environment that sets this key of it.
    pub fn variable(&self, key: &str) -> String {
        format!("LMT_{}_{}", self.name, key).to_uppercase().replace('-', "_")
    }
}
