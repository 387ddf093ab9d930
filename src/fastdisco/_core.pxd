"""Symbols, records, and the store that keeps them: the fields, with a line for each."""
from cpython.ref cimport PyObject
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from ._bytes cimport same_bytes
from ._fields cimport KINDS, Field, Schema
from ._index cimport index_next, index_probe, index_probe_t, index_t

cdef enum:
    CHUNK_BITS = 12         # symbols, slots and edges lie in chunks of 4096, so that growing moves none
    CHUNK = 1 << CHUNK_BITS
    RECENT = 256
    FAMILIES = 32           # label families that derive a label name from a key
    ALL_PARTS = 0xFFFFFFFFu
    DOOMED = 0xFFFFFFFFu    # in a symbol's `refs`; of what is doomed, `find` makes what is set aside
    PROFILES = 64           # label profiles: combinations of the bits below
    ATTACH_NODE = 1
    ATTACH_NAMESPACE = 2
    ATTACH_DEPLOYMENT = 4
    ATTACH_JOB = 8
    ATTACH_CRONJOB = 16
    PROMETHEUS = 32         # the dialect

cdef struct Symbol:
    char* text              # UTF-8, no zero at the end
    PyObject* string        # the same as `str`, made on first demand
    uint32_t length         # FREED: the id is free, and `refs` is the next free one
    uint32_t refs           # owners: records, label sets, derived names, outcomes; 0: set aside; DOOMED: the sweep under way frees it

cdef struct Derived:
    uint32_t key
    uint32_t names[FAMILIES]    # label names made from `key`, owned; 0: not made yet

cdef class IdTable:         # a table keyed by ids that it does not own
    cdef object __weakref__

    cdef bint forget_doomed(self, Py_ssize_t* budget) noexcept

cdef class Symbols:
    cdef Symbol** chunks
    cdef uint32_t chunk_count
    cdef uint32_t top       # ids given out so far, free ones too
    cdef uint32_t free      # chain of free ids
    cdef readonly size_t live       # strings held, those set aside too
    cdef readonly size_t set_aside  # strings without an owner
    cdef index_t index
    cdef uint64_t seed
    cdef int phase          # of the sweep under way; 0: none is
    cdef uint32_t cursor    # where it goes on
    cdef object tables      # weakly: what is keyed by ids
    cdef list to_ask        # tables that the sweep has yet to ask
    cdef index_t controlled  # ids of strings with control characters, each its own hash
    cdef int pins           # holders of bare ids; no sweep meanwhile
    cdef object shapes      # the label shapes of these symbols, kept by _labels
    cdef index_t derived_index
    cdef Derived* derived
    cdef uint32_t[RECENT] derived_recent    # by the low bits of a key: the row that was asked for last; it may be another key's by now
    cdef uint32_t derived_top, derived_free
    cdef size_t derived_capacity

    cdef int new_id(self) except -1
    cdef bint pass_over(self, Py_ssize_t* budget) except -1
    cdef int hold_new(self, bytes text) except -1

    cdef inline Symbol* at(self, uint32_t id) noexcept nogil:
        return &self.chunks[id >> CHUNK_BITS][id & (CHUNK - 1)]

    cdef inline void hold(self, uint32_t id) noexcept nogil:
        cdef Symbol* symbol = self.at(id)
        symbol.refs += 1
        if symbol.refs <= 1:
            # it was set aside, perhaps doomed; DOOMED and 1 are 0
            symbol.refs = 1
            self.set_aside -= 1

    cdef inline void drop(self, uint32_t id) noexcept nogil:
        cdef Symbol* symbol = self.at(id)
        symbol.refs -= 1
        if symbol.refs == 0:
            self.set_aside += 1

    cdef inline bint take_same(self, uint32_t id, const char* text, size_t length) noexcept nogil:
        """Whether an id, of whatever string it is now, is that of this one; it is found again then, as by `find`."""
        cdef Symbol* symbol = self.at(id)
        if symbol.length != length or id == 0 or not same_bytes(symbol.text, text, length):
            return False
        if symbol.refs == DOOMED:
            symbol.refs = 0
        return True

    cdef inline bint is_controlled(self, uint32_t id) noexcept nogil:
        """Whether the string has control characters."""
        if self.controlled.count == 0:
            return False
        cdef index_probe_t probe = index_probe(&self.controlled, id)
        return index_next(&probe) != 0

    cdef uint32_t find(self, const char* text, size_t length, uint32_t hash) noexcept nogil
    cdef uint32_t add(self, const char* text, size_t length, uint32_t hash) except 0
    cdef uint32_t intern(self, const char* text, size_t length) except 0
    cdef uint32_t intern_str(self, str text) except 0
    cdef str string(self, uint32_t id)
    cdef uint32_t* derived_names(self, uint32_t key) except NULL
    cdef void forget_derived(self, uint32_t key) noexcept
    cdef int release(self, uint32_t id) except -1

cdef struct Record:         # what is kept of one object
    uint32_t length         # words
    uint32_t mark           # of the list that saw it last
    uint16_t watcher        # whose part of the store it is
    uint8_t kind
    uint32_t words[1]       # see _fields.pxd; symbols in them are owned

cdef struct Slot:           # a name, with or without an object: references may name what is not seen yet
    Record* record
    uint32_t namespace, name        # symbols, owned
    uint32_t outs           # edges to what this object refers to
    uint32_t ins            # edges from what refers to this name
    uint32_t parts          # parts of the object, the most since it was last rendered whole
    uint16_t held           # batches that name this slot
    uint8_t kind
    uint8_t dirty           # queued, whole
    uint8_t missing         # reported as a reference without object
    uint8_t gone            # its watch or a list has told that the object went: nothing to ask for
    uint8_t used

cdef struct Edge:           # one reference; doubly linked by referee
    uint32_t referrer, referee      # slots
    uint32_t next_out, next_in, previous_in
    uint32_t part           # of the referrer: where in it the reference is first made
    uint8_t dirty           # queued
    uint8_t once            # found by what it connects, in `Store.once`

cdef class Store:
    cdef readonly Symbols symbols
    cdef index_t tables[KINDS]          # by kind: (namespace, name) -> slot
    cdef Slot** slots
    cdef uint32_t slot_chunks, slot_top, slot_free
    cdef Edge** edges
    cdef uint32_t edge_chunks, edge_top, edge_free
    cdef index_t once                   # edges that only some profiles need
    cdef uint64_t* queue            # dirty slots, and edges with QUEUED_EDGE
    cdef size_t queue_head, queue_end, queue_capacity
    cdef uint64_t queued, taken     # entries since the store was made
    cdef int watchers               # numbers given to watchers so far
    cdef int64_t[KINDS] objects_of, added_of, updated_of, removed_of, rendered_of
    cdef int[KINDS][PROFILES] wanted            # subscribers by kind and profile
    cdef uint64_t[KINDS] profiles               # of each kind those that are wanted, a bit each
    cdef int[KINDS] shown                       # subscribers whose profile attaches objects of the kind
    cdef bint nodes_listed                      # a node that is not here does not exist
    cdef uint32_t nodes_cursor                  # slots before it know of that
    cdef uint32_t* missing
    cdef size_t missing_count, missing_capacity

    cdef inline Slot* slot(self, uint32_t id) noexcept nogil:
        return &self.slots[id >> CHUNK_BITS][id & (CHUNK - 1)]

    cdef inline Edge* edge(self, uint32_t id) noexcept nogil:
        return &self.edges[id >> CHUNK_BITS][id & (CHUNK - 1)]

    cdef uint32_t find(self, int kind, uint32_t namespace, uint32_t name) noexcept nogil
    cdef uint32_t find_or_make(self, int kind, uint32_t namespace, uint32_t name) except 0
    cdef Record* make_record(self, int kind, int watcher, uint32_t mark, const uint32_t* words, uint32_t length) except NULL
    cdef void free_record(self, Record* record) noexcept
    cdef int put(self, Record* record) except -1
    cdef int remove(self, uint32_t slot) except -1
    cdef bint is_same(self, uint32_t slot, const uint32_t* words, uint32_t length) noexcept nogil
    cdef int enqueue(self, uint64_t entry) except -1
    cdef int touch(self, uint32_t slot) except -1
    cdef int touch_dependants(self, uint32_t slot) except -1
    cdef uint32_t take_dirty(self, uint32_t* part) noexcept
    cdef int link(self, uint32_t slot) except -1
    cdef uint32_t link_addresses(self, uint32_t slot, const uint32_t* words, uint32_t where, int size, uint32_t part) except? 0
    cdef bint is_pod(self, uint32_t kind) noexcept
    cdef uint32_t service_of_slice(self, const uint32_t* words) noexcept
    cdef int refer(self, uint32_t referrer, int kind, uint32_t namespace, uint32_t name, uint32_t part) except -1
    cdef int refer_once(self, uint32_t referrer, int kind, uint32_t namespace, uint32_t name, uint32_t part) except -1
    cdef uint32_t add_edge(self, uint32_t referrer, uint32_t referee, uint32_t part) except 0
    cdef int unlink(self, uint32_t slot) except -1
    cdef void settle(self, uint32_t slot) noexcept
    cdef int report_missing(self, uint32_t slot) except -1
    cdef dict mapping(self, Schema* schema, const uint32_t* words, const uint32_t* fields)
    cdef dict chosen(self, Field* field, const uint32_t* fields)
