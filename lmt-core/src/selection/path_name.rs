//! How users name a way: a mechanism, or a family of them, and perhaps who
//! copies.

use crate::vocabulary::model::Model;

/// A way as users write it: `name`, or `name:get`, `name:put`,
/// `name:cooperative`, `name:both`. A name without its last part means all of that family.
///
/// ```
/// use lmt_core::mechanism::Model;
/// use lmt_core::selection::PathName;
///
/// let way: PathName = "fast:put".parse()?;
/// assert_eq!((way.name.as_str(), way.model), ("fast", Some(Model::Put)));
/// assert!(way.means("fast-lane", Model::Put) && !way.means("fast-lane", Model::Get));
/// # Ok::<(), lmt_core::selection::PathNameError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Hash)]
pub struct PathName {
    /// The mechanism's name, or a family's.
    pub name: String,
    /// Who copies, where that is said.
    pub model: Option<Model>,
}

/// A way that names no model that there is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` names no model; after the colon comes get, put, cooperative, both or stream")]
pub struct PathNameError {
    /// What was written.
    pub text: String,
}

impl PathName {
    /// Whether it means the mechanism of this name in this model.
    pub fn means(&self, name: &str, model: Model) -> bool {
        self.means_mechanism(name) && self.model.is_none_or(|wanted| wanted == model)
    }

    /// Whether it means the mechanism of this name in some model.
    pub fn means_mechanism(&self, name: &str) -> bool {
        name.strip_prefix(self.name.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    }
}

impl std::str::FromStr for PathName {
    type Err = PathNameError;

    fn from_str(text: &str) -> Result<Self, PathNameError> {
        let Some((name, model)) = text.split_once(':') else {
            return Ok(Self { name: text.to_owned(), model: None });
        };
        match Model::from_name(model) {
            Some(model) => Ok(Self { name: name.to_owned(), model: Some(model) }),
            None => Err(PathNameError { text: text.to_owned() }),
        }
    }
}

impl std::fmt::Display for PathName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.model {
            None => f.write_str(&self.name),
            Some(model) => write!(f, "{}:{model}", self.name),
        }
    }
}
