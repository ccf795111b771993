//! A domain, an endpoint and what it is bound to, as C points to them. What is done
//! with each stands in the file of its kind, above this one.
#![allow(unsafe_code)] // Pointers of C become objects.

use std::sync::{Arc, OnceLock};

use super::event::Reports;
use super::registry::Registered;
use super::shared_domain::Shared;
use super::waiting::WaitObject;
use crate::abi::Errno;
use crate::abi::domain::FidAv;
use crate::abi::endpoint::FidEp;
use crate::abi::eq::{FidCntr, FidCq};
use crate::abi::fabric::FidDomain;
use crate::border::Object;
use crate::log::Subsystem;
use crate::refuse::because;
use crate::state::endpoint::Endpoint;
use crate::state::queue::Format;
use crate::state::vector::NAME_BYTES;
use crate::state::{SharedState, State};

pub(super) type DomainObject = Object<FidDomain, Arc<Shared>>;

/// The domain behind a pointer.
///
/// # Safety
/// It is null or a domain of this provider that nobody closes during the call.
pub unsafe fn domain<'a, P>(domain: *const P) -> Result<&'a Arc<Shared>, Errno> {
    // SAFETY: the caller's promise.
    unsafe { DomainObject::get(domain) }.map(|object| &object.inner)
}

/// An endpoint, by its number in its domain.
pub struct Ep {
    /// The domain.
    pub domain: Arc<Shared>,
    /// The number.
    pub number: usize,
    /// What others insert into their address vectors.
    pub name: [u8; NAME_BYTES],
    /// Its number for owners' entries, if it has an owner.
    pub registered: OnceLock<Registered>,
    pub(super) reports: Reports,
}

pub(super) type EpObject = Object<FidEp, Ep>;

/// The endpoint behind a pointer.
///
/// # Safety
/// It is null or an endpoint of this provider that nobody closes during the call.
#[inline]
pub unsafe fn endpoint<'a, P>(endpoint: *const P) -> Result<&'a Ep, Errno> {
    // SAFETY: the caller's promise.
    unsafe { EpObject::get(endpoint) }.map(|object| &object.inner)
}

impl Ep {
    /// Calls `f` with the endpoint and what it reaches.
    #[inline]
    pub fn with<T>(
        &self,
        f: impl FnOnce(&mut Endpoint, &mut SharedState) -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        let mut state = self.domain.domain.lock();
        let state = &mut *state;
        let endpoint = state.endpoints.get_mut(self.number).ok_or(Errno::INVAL)?;
        f(endpoint, &mut state.shared_state)
    }

    /// The endpoint and what it reaches, to begin an operation: [`Endpoint::begun`] follows.
    #[inline(always)] // The path of a short message.
    pub fn enabled<'a>(
        &self,
        state: &'a mut State,
    ) -> Result<(&'a mut Endpoint, &'a mut SharedState), Errno> {
        let endpoint = state.endpoints.get_mut(self.number).ok_or(Errno::INVAL)?;
        if !endpoint.is_enabled() {
            let why = format_args!("an operation needs an enabled endpoint; call fi_enable");
            return Err(because(Subsystem::EpData, Errno::OPBADSTATE, why));
        }
        Ok((endpoint, &mut state.shared_state))
    }

    /// Calls `f` with them.
    #[inline]
    pub fn begin(
        &self,
        f: impl FnOnce(&mut Endpoint, &mut SharedState) -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        let mut state = self.domain.domain.lock();
        let (endpoint, shared_state) = self.enabled(&mut state)?;
        let begun = f(endpoint, shared_state);
        endpoint.begun(shared_state);
        begun
    }
}

/// A queue, by its number in its domain.
#[derive(Debug)]
pub struct Cq {
    /// The domain.
    pub domain: Arc<Shared>,
    /// The number.
    pub number: usize,
    pub(super) format: Format,
    pub(super) wait_object: WaitObject,
    pub(super) context: usize,
    /// The owner's queue to which completions are written, if it is an owner's; an
    /// address.
    pub owner: Option<usize>,
}

pub(super) type CqObject = Object<FidCq, Cq>;

/// The queue behind a pointer.
///
/// # Safety
/// It is null or a queue of this provider that nobody closes during the call.
pub unsafe fn queue<'a, P>(queue: *const P) -> Result<&'a Cq, Errno> {
    // SAFETY: the caller's promise.
    unsafe { CqObject::get(queue) }.map(|object| &object.inner)
}

/// A counter, by its number in its domain.
#[derive(Debug)]
pub struct Cntr {
    /// The domain.
    pub domain: Arc<Shared>,
    /// The number.
    pub number: usize,
    pub(super) wait_object: WaitObject,
    pub(super) context: usize,
}

pub(super) type CntrObject = Object<FidCntr, Cntr>;

/// The counter behind a pointer.
///
/// # Safety
/// It is null or a counter of this provider that nobody closes during the call.
pub unsafe fn counter<'a, P>(counter: *const P) -> Result<&'a Cntr, Errno> {
    // SAFETY: the caller's promise.
    unsafe { CntrObject::get(counter) }.map(|object| &object.inner)
}

/// A vector, by its number in its domain.
#[derive(Debug)]
pub struct Vector {
    /// The domain.
    pub domain: Arc<Shared>,
    /// The number.
    pub number: usize,
    /// Where insertions are told, if they are.
    pub(super) reports: Option<Reports>,
}

pub(super) type VectorObject = Object<FidAv, Vector>;

/// The vector behind a pointer.
///
/// # Safety
/// It is null or a vector of this provider that nobody closes during the call.
pub unsafe fn vector<'a, P>(vector: *const P) -> Result<&'a Vector, Errno> {
    // SAFETY: the caller's promise.
    unsafe { VectorObject::get(vector) }.map(|object| &object.inner)
}
