//! How a group comes into being.
#![forbid(unsafe_code)]

use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use lmt::launch;
use lmt::{Address, Endpoint, EndpointId};
use lmt_core::cpu_set::CpuSet;
use lmt_core::endpoint::{Engine, Label, SendMode, Source, TagMatch, Wanted};
use lmt_core::region::{Direction, Protection, RegionKey};
use lmt_core::shared_memory::SharedMemory;

use crate::board::Board;
use crate::check::Team;
use crate::choice::Chooser;
use crate::domains::{self, NOWHERE, StreamsFrom};
use crate::engine::with_engine;
use crate::error::{Broken, GroupError};
use crate::group::Group;
use crate::layout::Layout;
use crate::lent::Memory;
use crate::operation::Operation;
use crate::others;
use crate::running::{Member, SPACE};
use crate::signature::mix;

/// What each of so many ranks can post in a call, in bytes. Small calls go through it.
///
/// 1 MiB of few ranks and 8 KiB of many. A group has twice as much for each rank, 16 MiB
/// from 8 ranks on; it is allocated when the group is made.
pub const fn slot_bytes(ranks: u32) -> u64 {
    let share = ALL_SLOTS_BYTES / if ranks == 0 { 1 } else { ranks as u64 };
    let share = if share < MIN_SLOT_BYTES { MIN_SLOT_BYTES } else { share };
    if share > MAX_SLOT_BYTES { MAX_SLOT_BYTES } else { share }
}

const ALL_SLOTS_BYTES: u64 = 8 << 20;
const MIN_SLOT_BYTES: u64 = 8 << 10;
const MAX_SLOT_BYTES: u64 = 1 << 20;

/// The most ranks of a group.
pub const MAX_RANKS: u32 = 1024;

impl<'e> Group<'e> {
    /// Makes a group of the endpoints at these addresses, in this order of ranks; this
    /// endpoint's own is among them. All members call it at once, with the same list;
    /// it returns when all have.
    ///
    /// # Errors
    /// The list is no group, a member cannot be reached, or memory is short.
    pub fn create(endpoint: &'e Endpoint, addresses: &[Address]) -> Result<Self, GroupError> {
        let ids: Vec<EndpointId> = addresses.iter().map(Address::id).collect();
        let rank = own_rank(endpoint, &ids)?;
        let peers = addresses.iter().map(|address| endpoint.insert_peer(address));
        let members = ids.iter().zip(peers).map(|(&id, peer)| Ok(Member { peer: peer?, id }));
        let members: Vec<Member> = members.collect::<Result<_, GroupError>>()?;
        let layout = Layout::new(members.len() as u32, slot_bytes(members.len() as u32));
        let tag = tag_of_members(&ids);
        let key = with_engine(endpoint, |engine| {
            if rank == 0 {
                give_board(engine, &layout, &members[1..], tag)
            } else {
                hear(engine, members[0], tag)
            }
        })?;
        Self::on_board(endpoint, &key, layout, members, rank, chooser(endpoint))
    }

    /// Makes the group of all ranks of a launched job, in its order.
    ///
    /// # Errors
    /// As [`Group::create`].
    pub fn from_launch(endpoint: &'e Endpoint, group: &launch::Group) -> Result<Self, GroupError> {
        let addresses: Vec<Address> = (0..group.size).map(|rank| group.address(rank)).collect();
        Self::create(endpoint, &addresses)
    }

    /// Makes groups of those ranks that name the same colour, in the order of `key`,
    /// and of ranks where keys are equal; none for a rank that names no colour. All
    /// ranks call it.
    ///
    /// # Errors
    /// As [`Group::run`] and [`Group::create`].
    pub fn split(&self, colour: Option<u32>, key: i32) -> Result<Option<Group<'e>>, GroupError> {
        let mut own = [0; WISH_BYTES];
        own[..8].copy_from_slice(&colour.map_or(u64::MAX, u64::from).to_ne_bytes());
        own[8..].copy_from_slice(&i64::from(key).to_ne_bytes());
        let mut all = vec![0; WISH_BYTES * self.size() as usize];
        self.run(Operation::allgather(&own[..], &mut all[..]))?;
        let mut chosen: Vec<(i64, u32)> = Vec::new();
        for (rank, wish) in all.as_chunks::<WISH_BYTES>().0.iter().enumerate() {
            let (theirs, key) = wish.split_at(8);
            let word = |bytes: &[u8]| u64::from_ne_bytes(bytes.try_into().unwrap_or_default());
            if colour.map(u64::from) == Some(word(theirs)) {
                chosen.push((word(key) as i64, rank as u32));
            }
        }
        chosen.sort_unstable();
        let ranks: Vec<u32> = chosen.into_iter().map(|(_, rank)| rank).collect();
        self.begin_part(&ranks)
    }

    /// Makes a second group of the same ranks, whose calls are apart from this one's.
    ///
    /// # Errors
    /// As [`Group::split`].
    pub fn duplicate(&self) -> Result<Group<'e>, GroupError> {
        let copy = self.split(Some(0), 0)?;
        copy.ok_or_else(|| GroupError::Members("a group of all ranks has this one".into()))
    }

    /// A group of these ranks of this one, if this rank is among them; all take part in
    /// telling where the boards are.
    fn begin_part(&self, ranks: &[u32]) -> Result<Option<Group<'e>>, GroupError> {
        let endpoint = self.endpoint();
        let layout = Layout::new(ranks.len().max(1) as u32, slot_bytes(ranks.len() as u32));
        let mut own = [0; RegionKey::BYTES];
        let is_first = ranks.first() == Some(&self.rank());
        // A board that cannot be is told by a key of nobody's, so that none waits for it.
        let mut short = None;
        if is_first {
            match with_engine(endpoint, |engine| allocate(engine, &layout)) {
                Ok(key) => own = key.to_bytes(),
                Err(error) => short = Some(error),
            }
        }
        let mut all = vec![0; RegionKey::BYTES * self.size() as usize];
        self.run(Operation::allgather(&own[..], &mut all[..]))?;
        if let Some(error) = short {
            return Err(error);
        }
        let Some(rank) = ranks.iter().position(|&rank| rank == self.rank()) else { return Ok(None) };
        let first = ranks[0] as usize;
        let key = RegionKey::from_bytes(all.as_chunks::<{ RegionKey::BYTES }>().0[first]);
        let members: Vec<Member> = ranks.iter().filter_map(|&rank| self.member(rank)).collect();
        if key.owner() != members[0].id || key.total_bytes() != layout.total_bytes() {
            return Err(GroupError::Members(format!("rank {first} has given no board for the new group")));
        }
        Self::on_board(endpoint, &key, layout, members, rank as u32, Ok(self.chooser())).map(Some)
    }

    /// A group whose board is this region of rank 0's; returns when all ranks have it.
    fn on_board(
        endpoint: &'e Endpoint,
        key: &RegionKey,
        layout: Layout,
        members: Vec<Member>,
        rank: u32,
        chooser: Result<Chooser, GroupError>,
    ) -> Result<Self, GroupError> {
        let size = members.len() as u32;
        let tag = mix(key.handle() ^ mix_id(key.owner())) & 0x7f_ffff_ffff;
        let board = with_engine(endpoint, |engine| {
            let board = map(engine, key).and_then(|memory| {
                let board = Board::new(memory, layout, rank).filter(|board| board.is_sound());
                let shape = "rank 0 has given no board of this group's shape";
                board.ok_or_else(|| GroupError::Members(shape.into()))
            });
            confirm(engine, &members, rank, tag | CONFIRMING, board)
        })?;
        let team = Team { rank, size, domains: Rc::from([]), slot_bytes: layout.slot_bytes };
        let (chooser, wrong) = chooser.map_or_else(|e| (Chooser::default(), Some(e)), |c| (c, None));
        let group = Self::new(endpoint, board, members, team, tag, chooser.before_entry_barrier());
        if rank == 0 {
            group.keep_board(*key);
        }
        // From here on what fails breaks the group, so that none waits for this rank.
        match with_engine(endpoint, |engine| may_reach(engine, &group.members(), rank)) {
            Ok(single_copy) => group.introduce(single_copy, wrong)?,
            Err(error) => {
                group.abandon();
                return Err(error);
            }
        }
        Ok(group)
    }

    /// The first call: all ranks have the board, and hear what each may do and where
    /// it runs, and whether its configuration is wrong.
    fn introduce(&self, single_copy: bool, wrong: Option<GroupError>) -> Result<(), GroupError> {
        let size = self.size();
        // Nothing is told apart among two.
        let machine = if size > 2 { lmt::configuration::machine().ok() } else { None };
        let cpus = CpuSet::of_this_thread();
        let [node, cache] = machine.as_ref().map_or([NOWHERE; 2], |machine| domains::place(machine, &cpus));
        let (node, cache) = (node.to_ne_bytes(), cache.to_ne_bytes());
        let own =
            [u8::from(single_copy) | u8::from(wrong.is_some()) << 1, node[0], node[1], cache[0], cache[1]];
        let mut all = vec![0; own.len() * size as usize];
        self.run(Operation::allgather(&own[..], &mut all[..]))?;
        let said = all.as_chunks::<5>().0;
        let place = |[_, a, b, c, d]: &[u8; 5]| [u16::from_ne_bytes([*a, *b]), u16::from_ne_bytes([*c, *d])];
        let places: Vec<domains::Place> = said.iter().map(place).collect();
        if let Some(wrong) = wrong {
            return Err(wrong);
        }
        if let Some(rank) = said.iter().position(|said| said[0] & 2 != 0) {
            return Err(GroupError::Configuration(format!(
                "rank {rank}'s configuration is wrong, and its own error says why; correct it there and make the group again"
            )));
        }
        let streams_from =
            machine.map_or(StreamsFrom::NEVER, |machine| StreamsFrom::of(&machine, &cpus, &places));
        self.settle(said.iter().all(|said| said[0] == 1), &places, streams_from);
        Ok(())
    }
}

const WISH_BYTES: usize = 16;

/// Tells the message by which a rank says that it has the board from those of calls,
/// whose tags have 63 bits.
const CONFIRMING: u64 = 1 << 63;

/// What a group of this endpoint chooses by: its configuration, or that of this process
/// where its engine is the embedder's.
fn chooser(endpoint: &Endpoint) -> Result<Chooser, GroupError> {
    match endpoint.configuration() {
        Some(configuration) => Chooser::of(configuration),
        None => {
            let loaded = lmt::configuration::load();
            Chooser::of(&loaded.map_err(|failure| GroupError::Configuration(failure.to_string()))?)
        }
    }
}

fn own_rank(endpoint: &Endpoint, ids: &[EndpointId]) -> Result<u32, GroupError> {
    let wrong = |sentence: String| Err(GroupError::Members(sentence));
    if ids.len() > MAX_RANKS as usize {
        return wrong(format!("{} members are more than the {MAX_RANKS} that a group may have", ids.len()));
    }
    let mut sorted = ids.to_vec();
    sorted.sort_unstable_by_key(|id| id.to_bytes());
    if sorted.windows(2).any(|pair| pair[0] == pair[1]) {
        return wrong("an endpoint is in the list twice; each member has one rank".into());
    }
    match ids.iter().position(|id| *id == endpoint.id()) {
        Some(rank) => Ok(rank as u32),
        None => wrong("this endpoint is not in the list of the group's members; add its address".into()),
    }
}

fn allocate(engine: &mut Engine, layout: &Layout) -> Result<RegionKey, GroupError> {
    let key = engine.allocate_region(layout.total_bytes() as usize, Protection::READ_WRITE)?;
    if let Some(memory) = engine.mapped_region(&key)?
        && let Some(board) = Board::new(memory, *layout, 0)
    {
        board.begin();
    }
    Ok(key)
}

/// Rank 0 makes the board and says where it is. If it cannot be, the others are told that
/// there is none; if one of them cannot be reached, the rest find the group broken.
fn give_board(
    engine: &mut Engine,
    layout: &Layout,
    others: &[Member],
    tag: u64,
) -> Result<RegionKey, GroupError> {
    let made = allocate(engine, layout);
    let bytes = made.as_ref().map_or([0; RegionKey::BYTES], RegionKey::to_bytes);
    let told = tell(engine, others, &bytes, tag);
    let key = made?;
    let Err(error) = told else { return Ok(key) };
    if let Ok(Some(memory)) = engine.mapped_region(&key)
        && let Some(board) = Board::new(memory, *layout, 0)
    {
        board.break_for(Broken::Failed(0).word());
    }
    // Those that have it mapped keep it.
    let _destroyed = engine.destroy_region(&key);
    Err(error)
}

/// Tells all, whichever of them cannot be reached; the first error.
fn tell(
    engine: &mut Engine,
    others: &[Member],
    key: &[u8; RegionKey::BYTES],
    tag: u64,
) -> Result<(), GroupError> {
    let label = Label { tag, space: SPACE, immediate: None };
    let sends = others.iter().map(|member| {
        let data = Memory::from(&key[..]).into_buffer();
        engine.send(member.peer, label, data, SendMode::Standard)
    });
    let sends: Vec<_> = sends.collect();
    let results: Vec<_> =
        sends.into_iter().map(|sent| sent.and_then(|request| engine.wait(request))).collect();
    results.into_iter().try_for_each(|result| result.map(|_| ())).map_err(Into::into)
}

/// The others hear it.
fn hear(engine: &mut Engine, first: Member, tag: u64) -> Result<RegionKey, GroupError> {
    let mut bytes = [0; RegionKey::BYTES];
    let wanted = Wanted { space: SPACE, tags: TagMatch::exactly(tag) };
    let data = Memory::from(&mut bytes[..]).into_buffer();
    let request = engine.receive(Source::Peer(first.peer), wanted, data)?;
    engine.wait(request)?;
    let key = RegionKey::from_bytes(bytes);
    if key.owner() == first.id {
        Ok(key)
    } else {
        Err(GroupError::Members("rank 0 has given no board of its own".into()))
    }
}

/// Maps the board: the first byte that is got has it mapped.
fn map(engine: &mut Engine, key: &RegionKey) -> Result<Arc<SharedMemory>, GroupError> {
    let mut byte = [0];
    let into = Memory::from(&mut byte[..]).into_buffer();
    let request = engine.get(key, 0, into)?;
    engine.wait(request)?;
    let memory = engine.mapped_region(key)?;
    memory.ok_or_else(|| {
        GroupError::Members("the board was mapped and is not there; make the group again".into())
    })
}

/// Every rank tells rank 0 whether it has the board. One that has not cannot say so on it:
/// there rank 0 breaks the group in its place, so that none waits for it.
fn confirm(
    engine: &mut Engine,
    members: &[Member],
    rank: u32,
    tag: u64,
    board: Result<Board, GroupError>,
) -> Result<Board, GroupError> {
    if rank > 0 {
        let said = [u8::from(board.is_ok())];
        let label = Label { tag, space: SPACE, immediate: None };
        let data = Memory::from(&said[..]).into_buffer();
        let sent = engine.send(members[0].peer, label, data, SendMode::Standard)?;
        let sent = engine.wait(sent);
        return board.and_then(|board| sent.map(|_| board).map_err(GroupError::from));
    }
    let board = board?;
    for (other, member) in (1..).zip(&members[1..]) {
        match await_board_confirmation(engine, members[0].id, *member, tag) {
            Ok(true) => {}
            Ok(false) => board.break_for(Broken::Failed(other).word()),
            Err(_) => board.break_for(Broken::Died(other).word()),
        }
    }
    Ok(board)
}

/// Calls of this endpoint's other groups go on meanwhile: the member may be waiting for
/// one of them.
fn await_board_confirmation(
    engine: &mut Engine,
    own: EndpointId,
    member: Member,
    tag: u64,
) -> Result<bool, GroupError> {
    let mut said = [0];
    let wanted = Wanted { space: SPACE, tags: TagMatch::exactly(tag) };
    let data = Memory::from(&mut said[..]).into_buffer();
    let request = engine.receive(Source::Peer(member.peer), wanted, data)?;
    while !engine.is_done(request) {
        let moved = engine.progress()?;
        if !others::advance_all(own, engine) && !moved {
            engine.sleep_at_most(CONNECTION_POLL_INTERVAL)?;
        }
    }
    engine.wait(request)?;
    Ok(said == [1])
}

/// In a group of up to so many ranks all connect with all when it is made: each hears at
/// once of the death of any, and knows what it may do with each. Of more, a rank connects
/// with rank 0 and its neighbours, and with others as it needs them.
const ALL_CONNECT: u32 = 64;
/// How long to wait between looks at connections that are being made.
const CONNECTION_POLL_INTERVAL: Duration = Duration::from_millis(1);

/// Whether this rank may reach into the memory of those that it connects with, up to
/// [`ALL_CONNECT`] ranks all. Beyond, where rights differ between ranks, a call fails and
/// says so.
fn may_reach(engine: &mut Engine, members: &[Member], rank: u32) -> Result<bool, GroupError> {
    let size = members.len() as u32;
    let others: Vec<u32> = if size <= ALL_CONNECT {
        (0..size).filter(|&other| other != rank).collect()
    } else {
        [0, (rank + 1) % size, (rank + size - 1) % size].into_iter().filter(|&other| other != rank).collect()
    };
    for &other in &others {
        engine.connect(members[other as usize].peer)?;
    }
    let mut answers = others.iter().map(|&other| members[other as usize].peer).collect::<Vec<_>>();
    let mut may = true;
    while !answers.is_empty() {
        answers.retain(|&peer| {
            let both = [Direction::Get, Direction::Put].map(|direction| engine.reaches(peer, direction));
            may &= both.iter().all(|answer| *answer != Some(false));
            both.iter().any(Option::is_none)
        });
        if let Some(error) = answers.iter().find_map(|&peer| engine.peer_error(peer)) {
            return Err(lmt::OperationError::Peer(error.clone()).into());
        }
        if !answers.is_empty() {
            engine.wait_for_progress(Some(Instant::now() + CONNECTION_POLL_INTERVAL))?;
        }
    }
    Ok(may)
}

/// Tells creations of groups with different members apart; those of the same members
/// come in the same order everywhere.
fn tag_of_members(ids: &[EndpointId]) -> u64 {
    ids.iter().fold(1, |sum, &id| mix(sum ^ mix_id(id))) | 1 << 63
}

fn mix_id(id: EndpointId) -> u64 {
    let bytes = id.to_bytes();
    let (low, high) = bytes.split_at(8);
    let word = |bytes: &[u8]| u64::from_ne_bytes(bytes.try_into().unwrap_or_default());
    mix(word(low) ^ mix(word(high)))
}
