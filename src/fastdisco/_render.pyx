"""What is rendered when: what has changed, everything for those who register, or one object.

    dirty slots and parts -> (targets of each) -> Batch
"""
import cython

from libc.stdint cimport uint32_t, uint64_t

from ._batch cimport MOST_PARTS, PART_BITS, Batch
from ._core cimport ALL_PARTS, ATTACH_CRONJOB, ATTACH_DEPLOYMENT, ATTACH_NAMESPACE, ATTACH_NODE, PROFILES, Record, Store
from ._endpoints cimport EndpointsWriter
from ._fields cimport (
    ABSENT, EMPTY, ENDPOINTS, ENDPOINTSLICE, JOB, KINDS, NAMESPACE, NODE, POD, POD_NODE_NAME, REPLICASET, kind_number,
)

cdef enum:
    PARTS_AT_ONCE = 32      # between two looks at the budget


@cython.final
@cython.no_gc_clear     # freeing uses its references
cdef class Renderer(EndpointsWriter):
    """Turns objects of a store into targets, for the roles and label profiles that somebody subscribes to."""

    def subscribe(self, str role, int profile) -> None:
        """From now on changes of that role's objects are rendered with this profile; counted."""
        self.count_subscriber(kind_number(role), profile, 1)

    def unsubscribe(self, str role, int profile) -> None:
        """Takes one `subscribe` back."""
        self.count_subscriber(kind_number(role), profile, -1)

    cdef int count_subscriber(self, int kind, int profile, int by) except -1:
        if not 0 <= profile < PROFILES:
            raise ValueError(f"no label profile {profile}")
        self.store.wanted[kind][profile] += by
        if self.store.wanted[kind][profile]:
            self.store.profiles[kind] |= <uint64_t> 1 << profile
        else:
            self.store.profiles[kind] &= ~(<uint64_t> 1 << profile)
        if profile & ATTACH_NODE:
            self.store.shown[NODE] += by
        if profile & ATTACH_NAMESPACE:
            self.store.shown[NAMESPACE] += by
        if profile & ATTACH_DEPLOYMENT:
            self.store.shown[REPLICASET] += by
        if profile & ATTACH_CRONJOB:
            self.store.shown[JOB] += by
        return 0

    def keep_apart(self) -> None:
        """Namespaces were named: in Prometheus' dialect endpoints of one do not see pods of another (D45)."""
        self.apart = True

    def know_nodes(self, Py_ssize_t budget=20000) -> bool:
        """All nodes have been listed: pods of others go where the dialect has it so (D8). In slices of objects; True: call again."""
        cdef Store store = self.store
        cdef uint32_t slot, node
        cdef uint32_t end = <uint32_t> min(<size_t> store.slot_top, <size_t> store.nodes_cursor + <size_t> max(budget, 0))
        cdef Record* record
        store.nodes_listed = True
        if store.profiles[POD] == 0:
            end = store.nodes_cursor = store.slot_top
        for slot in range(store.nodes_cursor, end):
            record = store.slot(slot).record
            if not store.slot(slot).used or record == NULL or record.kind != POD:
                continue
            node = store.find(NODE, ABSENT, record.words[POD_NODE_NAME]) if record.words[POD_NODE_NAME] > EMPTY else 0
            if node == 0 or store.slot(node).record == NULL:
                store.touch(slot)
        store.nodes_cursor = end
        return end < store.slot_top

    @property
    def dirty(self) -> int:
        """Objects and parts that wait to be rendered; some of them may have been rendered already."""
        return self.store.queue_end - self.store.queue_head + (self.rest != 0)

    @property
    def queued(self) -> int:
        """Entries that have ever been queued; what is queued now has been rendered when `taken` is there."""
        return self.store.queued

    @property
    def taken(self) -> int:
        """Entries that have ever been taken to be rendered, and have been rendered whole."""
        return self.store.taken - (self.rest != 0)

    def render(self, Py_ssize_t budget=2000) -> Batch:
        """The next dirty objects and parts, until about `budget` targets; empty if nothing is dirty.

        Of an object with many parts some, and at the next call more, as `unfinished` of the batch says: each part is as true as the
        moment at which it is rendered.
        """
        cdef Batch batch = Batch(self.store)
        cdef uint32_t slot
        cdef uint32_t part = 0
        cdef Py_ssize_t work = 0
        self.batch = batch
        try:
            while work + <Py_ssize_t> batch.target_count < budget:
                work += 1
                if self.rest:
                    self.go_on(budget)
                    continue
                slot = self.store.take_dirty(&part)
                if slot == 0:
                    break
                if part == ALL_PARTS:
                    self.rest_part, self.rest_end = 0, self.store.slot(slot).parts
                    self.store.slot(slot).parts = self.parts_now(slot)
                    self.rest_end = max(self.rest_end, self.store.slot(slot).parts)
                    self.put_down(slot)
                    self.go_on(budget)
                    continue
                batch.hold(slot)
                batch.touch(slot, part, self.store.slot(slot).kind)
                if self.store.slot(slot).record != NULL:
                    self.render_profiles(slot, part, self.store.profiles[self.store.slot(slot).kind])
        finally:
            self.end_batch()
        batch.unfinished = self.rest
        return batch

    def walk(self, Py_ssize_t cursor, wanted, Py_ssize_t budget=2000) -> tuple:
        """Objects of the slots from `cursor` on for the (role, profile) pairs `wanted`, until about `budget` targets.

        Gives (batch, next cursor, whether the end was reached). A cursor is a key: parts before it have been rendered.
        """
        cdef Batch batch = Batch(self.store)
        cdef uint32_t slot = <uint32_t> max(cursor >> PART_BITS, 1)
        cdef uint32_t part = <uint32_t> (cursor & MOST_PARTS)
        cdef Py_ssize_t work = 0
        cdef uint64_t[KINDS] asked
        cdef int kind
        for kind in range(KINDS):
            asked[kind] = 0
        for role, number in wanted:
            asked[kind_number(role)] |= <uint64_t> 1 << (<int> number & (PROFILES - 1))
        self.batch = batch
        try:
            while slot < self.store.slot_top and (work >> 3) + <Py_ssize_t> batch.target_count < budget:
                kind = self.store.slot(slot).kind
                work += 1
                if asked[kind] and self.store.slot(slot).used and self.store.slot(slot).record != NULL:
                    batch.hold(slot)
                    part = self.some_parts(slot, part, self.store.slot(slot).parts, asked[kind], budget)
                    if part < self.store.slot(slot).parts:
                        batch.unfinished = slot
                        break
                slot += 1
                part = 0
        finally:
            self.end_batch()
        return batch, <uint64_t> slot << PART_BITS | part, slot >= self.store.slot_top

    def again(self, list keys, Py_ssize_t place, str role, int profile, Py_ssize_t budget=2000) -> tuple:
        """The parts of `keys` from `place` on as they are now, with this profile, until about `budget` targets: (batch, next place)."""
        cdef Batch batch = Batch(self.store)
        cdef int kind = kind_number(role)
        cdef Py_ssize_t work = 0
        cdef uint64_t key
        cdef uint32_t slot
        cdef bint parted = kind == ENDPOINTS or kind == ENDPOINTSLICE
        self.batch = batch
        self.profile = profile
        try:
            while place < len(keys) and (work >> 3) + <Py_ssize_t> batch.target_count < budget:
                key = keys[place]
                place += 1
                work += 1
                slot = <uint32_t> (key >> PART_BITS)
                if slot >= self.store.slot_top:
                    continue
                # the object may have gone since, and its slot may be that of another one
                if self.store.slot(slot).used and self.store.slot(slot).kind == kind and self.store.slot(slot).record != NULL:
                    batch.hold(slot)
                    self.render_slot(slot, <uint32_t> (key & MOST_PARTS) if parted else ALL_PARTS)
        finally:
            self.end_batch()
        return batch, place

    def discovered(self, str role, str namespace, str name, int profile) -> list | None:
        """The targets of one object as they are now, as `Batch.targets` gives them; None if there is no such object."""
        cdef int kind = kind_number(role)
        cdef uint32_t slot = self.store.find(
            kind, self.symbols.intern_str(namespace) if namespace else ABSENT, self.symbols.intern_str(name),
        )
        if slot == 0 or self.store.slot(slot).record == NULL:
            return None
        cdef Batch batch = Batch(self.store)
        self.batch = batch
        self.profile = profile
        self.first_part, self.end_part = 0, ALL_PARTS
        try:
            self.render_slot(slot, ALL_PARTS)
        finally:
            self.end_batch()
        found = batch.targets(role, profile)
        batch.close()
        return found

    cdef void end_batch(self) noexcept:
        """What is known of an object holds until the store changes."""
        self.batch = None
        self.flat = 0

    cdef int render_profiles(self, uint32_t slot, uint32_t part, uint64_t wanted) except -1:
        """Once for each profile, of which `wanted` has a bit."""
        self.profile = 0
        while wanted:
            if wanted & 1:
                self.render_slot(slot, part)
            wanted >>= 1
            self.profile += 1
        return 0

    cdef int go_on(self, Py_ssize_t budget) except -1:
        """Renders more of the object that was put down."""
        cdef uint32_t slot = self.rest
        self.batch.hold(slot)
        self.rest_part = self.some_parts(slot, self.rest_part, self.rest_end, self.store.profiles[self.store.slot(slot).kind], budget)
        if self.rest_part >= self.rest_end:
            self.put_down(0)
        return 0

    cdef int put_down(self, uint32_t slot) except -1:
        """An object of which parts are left; its slot is not given to another name meanwhile."""
        cdef uint32_t before = self.rest
        self.rest = slot
        if slot:
            self.store.slot(slot).held += 1
        if before:
            self.store.slot(before).held -= 1
            self.store.settle(before)
        return 0

    cdef uint32_t some_parts(self, uint32_t slot, uint32_t part, uint32_t end, uint64_t wanted, Py_ssize_t budget) except? 0:
        """Renders parts from `part` on until they have about `budget` targets; the first one that is left, or `end`.

        So an object with fewer targets is rendered at once, whatever the batch has already.
        """
        cdef uint32_t i
        cdef Py_ssize_t enough = <Py_ssize_t> self.batch.target_count + budget
        while part < end:
            self.first_part = part
            self.end_part = min(part + PARTS_AT_ONCE, end)
            for i in range(part, self.end_part):
                self.batch.touch(slot, i, self.store.slot(slot).kind)
            part = self.end_part
            if self.store.slot(slot).record != NULL:
                self.render_profiles(slot, ALL_PARTS, wanted)
            if <Py_ssize_t> self.batch.target_count >= enough:
                break
        return part

    cdef uint32_t parts_now(self, uint32_t slot) except? 0:
        cdef Record* record = self.store.slot(slot).record
        if record == NULL:
            return 0
        if record.kind != ENDPOINTS and record.kind != ENDPOINTSLICE:
            return 1
        self.flatten(slot, record)
        return self.address_count
