//! What is known of the application's use of its buffers, as mechanisms are told.
#![forbid(unsafe_code)]

use super::Transfers;
use crate::mechanism::Plan;

impl Transfers {
    /// If so, no way is chosen by times ([`Plan::repeatable`]).
    #[must_use]
    pub const fn repeatable_if(mut self, repeatable: bool) -> Self {
        self.repeatable = repeatable;
        self
    }

    /// Whether that is so.
    pub const fn is_repeatable(&self) -> bool {
        self.repeatable
    }

    /// What a mechanism is asked, with what is known of the application.
    pub(super) const fn told(&self, plan: Plan) -> Plan {
        let times = !self.repeatable;
        Plan {
            left_alone: self.are_left_alone(),
            may_give_up: plan.may_give_up && times,
            may_pass_on: plan.may_pass_on && times,
            repeatable: self.repeatable,
            ..plan
        }
    }

    /// The application begins an operation with so many bytes: a send, or a receive that it
    /// posts.
    #[inline]
    pub fn begins(&mut self, bytes: u64) {
        self.pauses.begin(bytes);
    }

    /// A message of so many bytes has come in cells.
    #[inline]
    pub fn ends(&mut self, bytes: u64) {
        self.pauses.end(bytes);
    }

    /// The last message ended within a call of the application.
    pub const fn forgets_the_last(&mut self) {
        self.pauses.forget();
    }

    /// Whether the application has no time to use its buffers between messages
    /// ([`Plan::left_alone`]). Where no way is chosen by times it is taken to have.
    #[inline]
    pub const fn are_left_alone(&self) -> bool {
        self.pauses.are_short() && !self.repeatable
    }
}
