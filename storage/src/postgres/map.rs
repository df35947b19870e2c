//! Which server holds which slot.
//!
//! Slots are as many as containers have; servers hold *groups* of them, a fixed number for ever. The map has one entry
//! per group, each with an epoch that goes up when the group moves. Whoever asks a server for a slot says under which
//! epoch it believes to find it there, and the server refuses if that is not so: an old map is never wrong, only slow.

use std::sync::Arc;

use super::server::Server;
use crate::store::Slot;

/// Groups that slots fall into.
pub const GROUPS: u32 = 256;

/// The group of the catalog alone. It stays where the store's address points.
pub const CATALOG_GROUP: u32 = GROUPS;

/// Slots that a container may have, to the store: those of one container lie in groups side by side.
const SLOTS_OF_CONTAINER: u32 = 4096;

/// A step between containers that visits every group.
const STEP: u32 = 97;

/// The group of a slot. Fixed for ever: data lies by it.
pub fn group_of(slot: Slot) -> u32 {
    if slot.0 == 0 {
        return CATALOG_GROUP;
    }
    let (container, number) = (slot.0 / SLOTS_OF_CONTAINER, slot.0 % SLOTS_OF_CONTAINER);
    container.wrapping_mul(STEP).wrapping_add(number) % GROUPS
}

/// Where a slot is.
#[derive(Clone)]
pub struct Place {
    /// The server.
    pub server: Arc<Server>,
    /// The number of the server, to tell places apart.
    pub number: i32,
    /// The slot's group.
    pub group: i32,
    /// Under which epoch it is there.
    pub epoch: i64,
}

/// All groups.
pub struct Map {
    /// One for each group, that of the catalog last.
    pub places: Vec<Place>,
}

impl Map {
    /// Where a slot is, as far as this map knows.
    pub fn place(&self, slot: Slot) -> Place {
        self.places[group_of(slot) as usize].clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_spread_over_groups() {
        assert_eq!(group_of(Slot(0)), CATALOG_GROUP);
        // Containers of one slot, and the slots of one container, each fill all groups evenly.
        for slots in [
            (1..=1024).map(|container| Slot(container * SLOTS_OF_CONTAINER)).collect::<Vec<_>>(),
            (0..1024).map(|slot| Slot(7 * SLOTS_OF_CONTAINER + slot)).collect(),
        ] {
            let mut count = [0; GROUPS as usize];
            slots.into_iter().for_each(|slot| count[group_of(slot) as usize] += 1);
            assert_eq!(count, [4; GROUPS as usize]);
        }
    }
}
