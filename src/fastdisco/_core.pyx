"""The heart: each string once (Symbols), what is kept of each object, and who refers to whom (Store).

    decoded words -> put -> record, edges -> dirty slots and edges -> (rendering)

Everything runs under the GIL on the loop thread; only owners of symbols may be released elsewhere.
"""
import cython
from cpython.ref cimport Py_XDECREF, Py_XINCREF, PyObject
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcmp, memcpy, memset

import os
from weakref import WeakSet

from ._fields cimport (
    ABSENT, ADDRESS_SIZE, ADDRESS_TARGET_KIND, ADDRESS_TARGET_NAME, ADDRESS_TARGET_NAMESPACE, EMPTY, ENDPOINT_SIZE, ENDPOINTS,
    ENDPOINTS_SUBSETS, ENDPOINTSLICE, FIRST, FIXED_SYMBOLS, FLAG, INGRESS, ITEMS, KINDS, LITERAL, META_LABELS, META_NAME,
    META_NAMESPACE, NAMESPACE, NO_WORD, NODE, NUMBER, OBJECT, PAIR_KEY, PAIR_SIZE, PAIR_VALUE, PAIRS, POD, POD_NODE_NAME, SERVICE,
    SLICE_ENDPOINTS, SUBSET_ADDRESSES, SUBSET_NOT_READY, SUBSET_SIZE, TEXT, TEXTS, TRUE, VERSION, Field, Schema,
    kind_name, kind_number, schema_of,
)
from ._bytes cimport BYTES_CONTROL, byte_classes, hash_bytes, same_bytes
from ._index cimport hash_words, index_add, index_free, index_next, index_probe, index_probe_t, index_remove

cdef enum:
    FREED = 0xFFFFFFFFu
    SWEEP_FROM = 4096       # fewer strings set aside than this are not worth a sweep
    DOOMING = 1             # phases of a sweep
    ASKING = 2
    FREEING = 3

cdef uint64_t QUEUED_EDGE = <uint64_t> 1 << 32


cdef class IdTable:
    """A table keyed by ids that it does not own: told before any of them is freed."""

    cdef bint forget_doomed(self, Py_ssize_t* budget) noexcept:
        """Forgets entries with doomed ids, until the budget is used up; whether there are more."""
        return False


@cython.final
cdef class Symbols:
    """Every string once, as UTF-8, known by a 32-bit id. Equality of ids is equality of strings.

    Ids are owned by counting. A string without an owner is set aside: found again, it is taken back; a sweep frees it and its id.
    """

    def __cinit__(self):
        self.seed = int.from_bytes(os.urandom(8), "little")
        self.free = 0
        self.tables = WeakSet()
        self.to_ask = []
        for text in ("", "", "true", "false"):      # ABSENT is not in the index and reads as empty
            self.new_id()
            if self.top == ABSENT + 1:
                self.at(ABSENT).refs = 1
                self.at(ABSENT).text = <char*> malloc(1)
                if self.at(ABSENT).text == NULL:
                    raise MemoryError
            else:
                self.hold_new(text.encode())

    def __dealloc__(self):
        cdef uint32_t id
        for id in range(self.top):
            if self.at(id).length != FREED:
                free(self.at(id).text)
                Py_XDECREF(self.at(id).string)
        for id in range(self.chunk_count):
            free(self.chunks[id])
        free(self.chunks)
        free(self.derived)
        index_free(&self.index)
        index_free(&self.derived_index)
        index_free(&self.controlled)

    def __len__(self):
        """Strings held, those that are set aside too."""
        return self.live

    def due(self) -> bool:
        """Whether a sweep is under way or worth beginning: a tenth of all strings are set aside."""
        return self.phase != 0 or (self.set_aside >= SWEEP_FROM and self.set_aside * 10 > self.live)

    def sweep(self, Py_ssize_t budget=20000) -> bool:
        """Frees strings without an owner, in slices of about `budget` ids; True: there is more to do.

        What has no owner now is doomed; then every table keyed by ids forgets what is doomed; then what is doomed still is freed.
        Does nothing while a batch of rendered targets is open, since that holds bare ids.
        """
        cdef IdTable table
        if self.pins:
            return False
        if self.phase == 0:
            self.phase, self.cursor = DOOMING, FIXED_SYMBOLS
        if self.phase == DOOMING:
            if self.pass_over(&budget):
                return True
            self.phase, self.cursor, self.to_ask = ASKING, FIXED_SYMBOLS, list(self.tables)
        while self.to_ask:
            table = self.to_ask[len(self.to_ask) - 1]
            if table.forget_doomed(&budget):
                return True
            self.to_ask.pop()
        self.phase = FREEING
        if self.pass_over(&budget):
            return True
        self.phase = 0
        return False

    cdef bint pass_over(self, Py_ssize_t* budget) except -1:
        """The next ids of the first or the last phase; whether there are more."""
        cdef uint32_t id
        cdef uint32_t end = <uint32_t> min(<size_t> self.top, <size_t> self.cursor + <size_t> max(budget[0], 0))
        budget[0] -= end - self.cursor
        for id in range(self.cursor, end):
            if self.at(id).length == FREED:
                continue
            if self.phase == DOOMING and self.at(id).refs == 0:
                self.at(id).refs = DOOMED
            elif self.phase == FREEING and self.at(id).refs == DOOMED:
                self.release(id)
        self.cursor = end
        return end < self.top

    def bytes_held(self) -> int:
        """Bytes of all strings held, without their tables."""
        cdef uint32_t id
        cdef size_t total = 0
        for id in range(self.top):
            if self.at(id).length != FREED:
                total += self.at(id).length
        return total

    cdef int new_id(self) except -1:
        cdef Symbol** chunks
        if self.top >> CHUNK_BITS == self.chunk_count:
            chunks = <Symbol**> realloc(self.chunks, (self.chunk_count + 1) * sizeof(Symbol*))
            if chunks == NULL:
                raise MemoryError
            self.chunks = chunks
            self.chunks[self.chunk_count] = <Symbol*> calloc(CHUNK, sizeof(Symbol))
            if self.chunks[self.chunk_count] == NULL:
                raise MemoryError
            self.chunk_count += 1
        self.top += 1
        return 0

    cdef int hold_new(self, bytes text) except -1:
        """Gives the id that `new_id` made last to one of the fixed strings."""
        cdef uint32_t id = self.top - 1
        cdef Symbol* symbol = self.at(id)
        cdef size_t length = len(text)
        symbol.length = <uint32_t> length
        symbol.refs = 1
        symbol.text = <char*> malloc(length if length else 1)
        if symbol.text == NULL:
            raise MemoryError
        memcpy(symbol.text, <const char*> text, length)
        if not index_add(&self.index, hash_bytes(<const char*> text, length, self.seed), id):
            raise MemoryError
        self.live += 1
        return 0

    cdef uint32_t find(self, const char* text, size_t length, uint32_t hash) noexcept nogil:
        """The id of a string, or 0."""
        cdef index_probe_t probe = index_probe(&self.index, hash)
        cdef uint32_t id
        cdef Symbol* symbol
        while True:
            id = index_next(&probe)
            if id == 0:
                return 0
            symbol = self.at(id)
            if symbol.length == length and same_bytes(symbol.text, text, length):
                if symbol.refs == DOOMED:
                    symbol.refs = 0
                return id

    cdef uint32_t add(self, const char* text, size_t length, uint32_t hash) except 0:
        """A new id for a string that `find` did not find; valid UTF-8 is the caller's duty. It has no owner yet."""
        cdef uint32_t id
        cdef Symbol* symbol
        cdef char* copy = <char*> malloc(length if length else 1)
        if copy == NULL:
            raise MemoryError
        memcpy(copy, text, length)
        if self.free:
            id = self.free
            symbol = self.at(id)
            self.free = symbol.refs
        else:
            self.new_id()
            id = self.top - 1
            symbol = self.at(id)
        symbol.text = copy
        symbol.string = NULL
        symbol.length = <uint32_t> length
        symbol.refs = 0
        if not index_add(&self.index, hash, id):
            raise MemoryError
        if byte_classes(text, length) & BYTES_CONTROL and not index_add(&self.controlled, id, id):
            raise MemoryError
        self.live += 1
        self.set_aside += 1
        return id

    cdef uint32_t intern(self, const char* text, size_t length) except 0:
        cdef uint32_t hash = hash_bytes(text, length, self.seed)
        cdef uint32_t id = self.find(text, length, hash)
        return id if id else self.add(text, length, hash)

    cdef uint32_t intern_str(self, str text) except 0:
        cdef bytes encoded = text.encode("utf-8", "replace")
        return self.intern(<const char*> encoded, len(encoded))

    cdef str string(self, uint32_t id):
        """The symbol as `str`; the same object each time."""
        cdef Symbol* symbol = self.at(id)
        cdef str made
        if symbol.string == NULL:
            made = PyUnicode_DecodeUTF8(symbol.text, symbol.length, NULL) if symbol.length else ""
            symbol.string = <PyObject*> made
            # the symbol's own reference, given back when it is freed
            Py_XINCREF(symbol.string)
            return made
        return <str> symbol.string

    cdef int release(self, uint32_t id) except -1:
        """Frees a string without an owner, its derived names, and then its id."""
        cdef Symbol* symbol = self.at(id)
        self.forget_derived(id)
        index_remove(&self.index, hash_bytes(symbol.text, symbol.length, self.seed), id)
        if self.controlled.count:
            index_remove(&self.controlled, id, id)
        free(symbol.text)
        Py_XDECREF(symbol.string)
        symbol.text = NULL
        symbol.string = NULL
        symbol.length = FREED
        symbol.refs = self.free
        self.free = id
        self.live -= 1
        self.set_aside -= 1
        return 0

    cdef uint32_t* derived_names(self, uint32_t key) except NULL:
        """The label names made from a key, by family; the caller fills in what is 0, and owns nothing of it."""
        cdef uint32_t recent = self.derived_recent[key & (RECENT - 1)]
        if recent and self.derived[recent].key == key:
            return self.derived[recent].names
        cdef uint32_t hash = <uint32_t> (key * <uint64_t> 0x9E3779B97F4A7C15u >> 32)
        cdef index_probe_t probe = index_probe(&self.derived_index, hash)
        cdef uint32_t row
        cdef Derived* grown
        while True:
            row = index_next(&probe)
            if row == 0:
                break
            if self.derived[row].key == key:
                self.derived_recent[key & (RECENT - 1)] = row
                return self.derived[row].names
        if self.derived_free:
            row = self.derived_free
            self.derived_free = self.derived[row].names[0]
        else:
            if self.derived_top + 1 >= self.derived_capacity:
                self.derived_capacity = self.derived_capacity * 2 if self.derived_capacity else 256
                grown = <Derived*> realloc(self.derived, self.derived_capacity * sizeof(Derived))
                if grown == NULL:
                    raise MemoryError
                self.derived = grown
            self.derived_top += 1
            row = self.derived_top
        memset(&self.derived[row], 0, sizeof(Derived))
        self.derived[row].key = key
        if not index_add(&self.derived_index, hash, row):
            raise MemoryError
        return self.derived[row].names

    cdef void forget_derived(self, uint32_t key) noexcept:
        if self.derived_index.count == 0:
            return
        cdef uint32_t hash = <uint32_t> (key * <uint64_t> 0x9E3779B97F4A7C15u >> 32)
        cdef index_probe_t probe = index_probe(&self.derived_index, hash)
        cdef uint32_t row
        cdef int family
        while True:
            row = index_next(&probe)
            if row == 0:
                return
            if self.derived[row].key == key:
                break
        for family in range(FAMILIES):
            if self.derived[row].names[family]:
                self.drop(self.derived[row].names[family])
        index_remove(&self.derived_index, hash, row)
        self.derived[row].key = 0
        self.derived[row].names[0] = self.derived_free
        self.derived_free = row


cdef inline uint32_t key_hash(uint32_t namespace, uint32_t name) noexcept nogil:
    return <uint32_t> (((<uint64_t> namespace << 32 | name) ^ 0x2545F4914F6CDD1Du) * <uint64_t> 0x9E3779B97F4A7C15u >> 32)


@cython.final
@cython.no_gc_clear     # freeing uses its references
cdef class Store:
    """The objects of one group of watchers by kind, namespace and name; what refers to what; and what has to be rendered.

    An object that changes in a word of its record is dirty, and so is whatever shows it: entries of endpoints that name a pod,
    pods of a node, everything in a namespace. Rendering takes dirty slots from here.
    """

    def __cinit__(self, Symbols symbols not None):
        self.symbols = symbols
        self.slot_top = self.edge_top = self.nodes_cursor = 1       # 0 is no slot and no edge

    def __dealloc__(self):
        cdef uint32_t id
        for id in range(1, self.slot_top):
            if self.slot(id).used:
                self.free_record(self.slot(id).record)
                self.symbols.drop(self.slot(id).namespace)
                self.symbols.drop(self.slot(id).name)
        for id in range(self.slot_chunks):
            free(self.slots[id])
        for id in range(self.edge_chunks):
            free(self.edges[id])
        cdef int kind
        for kind in range(KINDS):
            index_free(&self.tables[kind])
        index_free(&self.once)
        free(self.slots)
        free(self.edges)
        free(self.queue)
        free(self.missing)

    def objects(self, str kind) -> int:
        """Objects of that kind now."""
        return self.objects_of[kind_number(kind)]

    def counters(self, str kind) -> tuple[int, int, int, int]:
        """Objects added, updated, removed and rendered, since the store was made."""
        cdef int k = kind_number(kind)
        return self.added_of[k], self.updated_of[k], self.removed_of[k], self.rendered_of[k]

    def get(self, str kind, str namespace, str name) -> dict | None:
        """The fields of an object that labels need, nested as in the API; None if it is not here."""
        cdef int k = kind_number(kind)
        cdef Record* record
        cdef uint32_t slot = self.find(k, self.symbols.intern_str(namespace) if namespace else ABSENT, self.symbols.intern_str(name))
        if slot == 0 or self.slot(slot).record == NULL:
            return None
        record = self.slot(slot).record
        return self.mapping(schema_of(k), record.words, record.words)

    def take_missing(self) -> list[tuple[str, str, str]]:
        """References that rendering found without an object since the last call, as (kind, namespace, name)."""
        cdef size_t i
        cdef Slot* slot
        taken = []
        for i in range(self.missing_count):
            slot = self.slot(self.missing[i])
            if not slot.missing:
                continue        # told already, or another name has the slot now
            slot.missing = 0
            if slot.used and slot.record == NULL:
                taken.append((kind_name(slot.kind), self.symbols.string(slot.namespace), self.symbols.string(slot.name)))
        self.missing_count = 0
        return taken

    cdef uint32_t find(self, int kind, uint32_t namespace, uint32_t name) noexcept nogil:
        """The slot of that name, or 0."""
        cdef index_probe_t probe = index_probe(&self.tables[kind], key_hash(namespace, name))
        cdef uint32_t id
        while True:
            id = index_next(&probe)
            if id == 0 or (self.slot(id).namespace == namespace and self.slot(id).name == name):
                return id

    cdef uint32_t find_or_make(self, int kind, uint32_t namespace, uint32_t name) except 0:
        cdef uint32_t id = self.find(kind, namespace, name)
        cdef Slot** chunks
        if id:
            return id
        if self.slot_free:
            id = self.slot_free
            self.slot_free = self.slot(id).outs
        else:
            if self.slot_top >> CHUNK_BITS >= self.slot_chunks:
                chunks = <Slot**> realloc(self.slots, (self.slot_chunks + 1) * sizeof(Slot*))
                if chunks == NULL:
                    raise MemoryError
                self.slots = chunks
                self.slots[self.slot_chunks] = <Slot*> malloc(CHUNK * sizeof(Slot))
                if self.slots[self.slot_chunks] == NULL:
                    raise MemoryError
                self.slot_chunks += 1
            id = self.slot_top
            self.slot_top += 1
        cdef Slot* slot = self.slot(id)
        memset(slot, 0, sizeof(Slot))
        slot.kind = <uint8_t> kind
        slot.used = 1
        slot.namespace = namespace
        slot.name = name
        self.symbols.hold(namespace)
        self.symbols.hold(name)
        if not index_add(&self.tables[kind], key_hash(namespace, name), id):
            raise MemoryError
        return id

    cdef Record* make_record(self, int kind, int watcher, uint32_t mark, const uint32_t* words, uint32_t length) except NULL:
        """A record that owns the symbols among `words`."""
        cdef Record* record = <Record*> malloc(sizeof(Record) + length * sizeof(uint32_t))
        cdef uint32_t i
        if record == NULL:
            raise MemoryError
        record.kind = <uint8_t> kind
        record.watcher = <uint16_t> watcher
        record.mark = mark
        record.length = length
        memcpy(record.words, words, length * sizeof(uint32_t))
        for i in range(length):
            if not words[i] & LITERAL:
                self.symbols.hold(words[i])
        return record

    cdef void free_record(self, Record* record) noexcept:
        cdef uint32_t i
        if record != NULL:
            for i in range(record.length):
                if not record.words[i] & LITERAL:
                    self.symbols.drop(record.words[i])
            free(record)

    cdef bint is_same(self, uint32_t slot, const uint32_t* words, uint32_t length) noexcept nogil:
        """Whether the slot's object has just these words."""
        cdef Record* record = self.slot(slot).record
        return record != NULL and record.length == length and memcmp(record.words, words, length * sizeof(uint32_t)) == 0

    cdef int put(self, Record* record) except -1:
        """Takes a record over, in the place of the one of that name; whatever shows it is dirty afterwards."""
        cdef uint32_t id = self.find_or_make(record.kind, record.words[META_NAMESPACE], record.words[META_NAME])
        cdef Slot* slot = self.slot(id)
        cdef Record* old = slot.record
        slot.record = record
        slot.gone = 0
        if old == NULL:
            self.objects_of[record.kind] += 1
        else:
            self.unlink(id)
        self.link(id)
        self.free_record(old)
        self.touch(id)
        self.touch_dependants(id)
        return 0

    cdef int remove(self, uint32_t id) except -1:
        cdef Slot* slot = self.slot(id)
        if slot.record == NULL:
            return 0
        self.objects_of[slot.kind] -= 1
        self.removed_of[slot.kind] += 1
        self.unlink(id)
        self.free_record(slot.record)
        slot.record = NULL
        slot.gone = 1
        self.touch(id)
        self.touch_dependants(id)
        self.settle(id)
        return 0

    cdef void settle(self, uint32_t id) noexcept:
        """Frees a slot that has no object and that nothing needs any more."""
        cdef Slot* slot = self.slot(id)
        if not slot.used or slot.record != NULL or slot.ins or slot.dirty or slot.held:
            return
        index_remove(&self.tables[slot.kind], key_hash(slot.namespace, slot.name), id)
        self.symbols.drop(slot.namespace)
        self.symbols.drop(slot.name)
        slot.used = 0
        slot.outs = self.slot_free
        self.slot_free = id

    # ---- what has to be rendered ----

    cdef int enqueue(self, uint64_t entry) except -1:
        cdef uint64_t* grown
        if self.queue_end == self.queue_capacity:
            if self.queue_head > self.queue_capacity // 2:
                memcpy(self.queue, self.queue + self.queue_head, (self.queue_end - self.queue_head) * sizeof(uint64_t))
                self.queue_end -= self.queue_head
                self.queue_head = 0
            else:
                self.queue_capacity = self.queue_capacity * 2 if self.queue_capacity else 1024
                grown = <uint64_t*> realloc(self.queue, self.queue_capacity * sizeof(uint64_t))
                if grown == NULL:
                    raise MemoryError
                self.queue = grown
        self.queue[self.queue_end] = entry
        self.queue_end += 1
        self.queued += 1
        return 0

    cdef uint32_t take_dirty(self, uint32_t* part) noexcept:
        """The next dirty slot and which part of it, or 0."""
        cdef uint64_t entry
        cdef uint32_t id
        cdef Edge* edge
        while self.queue_head < self.queue_end:
            entry = self.queue[self.queue_head]
            self.queue_head += 1
            self.taken += 1
            id = <uint32_t> entry
            if entry & QUEUED_EDGE:
                edge = self.edge(id)
                if edge.dirty:
                    edge.dirty = 0
                    if not self.slot(edge.referrer).dirty:
                        part[0] = edge.part
                        return edge.referrer
            elif self.slot(id).used and self.slot(id).dirty:
                self.slot(id).dirty = 0
                part[0] = ALL_PARTS
                return id
        self.queue_head = self.queue_end = 0
        return 0

    cdef int touch(self, uint32_t id) except -1:
        """Queues an object whole, if targets are made of its kind."""
        cdef Slot* slot = self.slot(id)
        if not slot.dirty and self.profiles[slot.kind]:
            slot.dirty = 1
            self.enqueue(id)
        return 0

    cdef int touch_dependants(self, uint32_t id) except -1:
        """Queues what shows this object: of endpoints that name a pod only those entries."""
        cdef int kind = self.slot(id).kind
        cdef uint32_t at = self.slot(id).ins
        cdef Edge* edge
        cdef Slot* referrer
        if kind != POD and kind != SERVICE and not self.shown[kind]:
            return 0
        while at:
            edge = self.edge(at)
            referrer = self.slot(edge.referrer)
            if (kind == POD or kind == NODE) and (referrer.kind == ENDPOINTS or referrer.kind == ENDPOINTSLICE):
                if not edge.dirty and not referrer.dirty and self.profiles[referrer.kind]:
                    edge.dirty = 1
                    self.enqueue(QUEUED_EDGE | at)
            # D23: only in Prometheus' dialect, whose profiles are the upper ones, do endpoints show their namespace themselves
            elif kind != NAMESPACE or (referrer.kind != ENDPOINTS and referrer.kind != ENDPOINTSLICE) \
                    or self.profiles[referrer.kind] >> PROMETHEUS:
                self.touch(edge.referrer)
                if kind != SERVICE and (referrer.kind == POD or referrer.kind == SERVICE):
                    self.touch_dependants(edge.referrer)
            at = edge.next_in
        return 0

    cdef int report_missing(self, uint32_t id) except -1:
        cdef uint32_t* grown
        if self.slot(id).missing or self.slot(id).gone:
            return 0
        if self.missing_count == self.missing_capacity:
            self.missing_capacity = self.missing_capacity * 2 if self.missing_capacity else 64
            grown = <uint32_t*> realloc(self.missing, self.missing_capacity * sizeof(uint32_t))
            if grown == NULL:
                raise MemoryError
            self.missing = grown
        self.slot(id).missing = 1
        self.missing[self.missing_count] = id
        self.missing_count += 1
        return 0

    # ---- who refers to whom ----

    cdef int link(self, uint32_t id) except -1:
        """Makes the edges of an object, and counts its parts: one an address of endpoints, else one."""
        cdef Slot* slot = self.slot(id)
        cdef const uint32_t* words = slot.record.words
        cdef const uint32_t* subset
        cdef uint32_t i, part = 0
        cdef uint32_t namespace = words[META_NAMESPACE]
        if slot.kind == ENDPOINTS:
            self.refer(id, SERVICE, namespace, words[META_NAME], 0)
            if namespace > EMPTY:
                self.refer(id, NAMESPACE, ABSENT, namespace, 0)
            if words[ENDPOINTS_SUBSETS]:
                subset = words + (words[ENDPOINTS_SUBSETS] & ~LITERAL)
                for i in range(subset[0] & ~LITERAL):
                    part = self.link_addresses(id, words, (subset + 1 + i * SUBSET_SIZE)[SUBSET_ADDRESSES], ADDRESS_SIZE, part)
                    part = self.link_addresses(id, words, (subset + 1 + i * SUBSET_SIZE)[SUBSET_NOT_READY], ADDRESS_SIZE, part)
        elif slot.kind == ENDPOINTSLICE:
            i = self.service_of_slice(words)
            if i > EMPTY:
                self.refer(id, SERVICE, namespace, i, 0)
            if namespace > EMPTY:
                self.refer(id, NAMESPACE, ABSENT, namespace, 0)
            part = self.link_addresses(id, words, words[SLICE_ENDPOINTS], ENDPOINT_SIZE, 0)
        else:
            part = 1
            if slot.kind == POD and words[POD_NODE_NAME] > EMPTY:
                self.refer(id, NODE, ABSENT, words[POD_NODE_NAME], 0)
            if (slot.kind == POD or slot.kind == SERVICE or slot.kind == INGRESS) and namespace > EMPTY:
                self.refer(id, NAMESPACE, ABSENT, namespace, 0)
        if part > self.slot(id).parts:
            self.slot(id).parts = part
        return 0

    cdef uint32_t link_addresses(self, uint32_t id, const uint32_t* words, uint32_t where, int size, uint32_t part) except? 0:
        """One edge a pod that the list names, with the part where it is named first; returns the part after the list."""
        cdef const uint32_t* address
        cdef uint32_t i
        if not where:
            return part
        cdef uint32_t count = words[where & ~LITERAL] & ~LITERAL
        for i in range(count):
            address = words + (where & ~LITERAL) + 1 + i * size
            if address[ADDRESS_TARGET_NAME] > EMPTY and self.is_pod(address[ADDRESS_TARGET_KIND]):
                self.refer(id, POD, address[ADDRESS_TARGET_NAMESPACE], address[ADDRESS_TARGET_NAME], part + i)
        return part + count

    cdef bint is_pod(self, uint32_t kind) noexcept:
        cdef Symbol* symbol = self.symbols.at(kind)
        return symbol.length == 3 and memcmp(symbol.text, b"Pod", 3) == 0

    cdef uint32_t service_of_slice(self, const uint32_t* words) noexcept:
        """The symbol of the slice's label kubernetes.io/service-name, or 0."""
        cdef const uint32_t* pair
        cdef Symbol* key
        cdef uint32_t i
        if not words[META_LABELS]:
            return 0
        cdef uint32_t where = words[META_LABELS] & ~LITERAL
        for i in range(words[where] & ~LITERAL):
            pair = words + where + 1 + i * PAIR_SIZE
            key = self.symbols.at(pair[PAIR_KEY])
            if key.length == 26 and memcmp(key.text, b"kubernetes.io/service-name", 26) == 0:
                return pair[PAIR_VALUE]
        return 0

    cdef int refer(self, uint32_t referrer, int kind, uint32_t namespace, uint32_t name, uint32_t part) except -1:
        # an empty namespace is none, as records have it
        cdef uint32_t referee = self.find_or_make(kind, namespace if namespace > EMPTY else ABSENT, name)
        cdef uint32_t newest = self.slot(referee).ins
        # the newest edge into a name comes first, so a pod that this object has named already is found at once
        if newest and self.edge(newest).referrer == referrer:
            return 0
        self.add_edge(referrer, referee, part)
        return 0

    cdef uint32_t add_edge(self, uint32_t referrer, uint32_t referee, uint32_t part) except 0:
        cdef uint32_t id
        cdef Edge** chunks
        cdef Edge* edge
        if self.edge_free:
            id = self.edge_free
            self.edge_free = self.edge(id).next_out
        else:
            if self.edge_top >> CHUNK_BITS >= self.edge_chunks:
                chunks = <Edge**> realloc(self.edges, (self.edge_chunks + 1) * sizeof(Edge*))
                if chunks == NULL:
                    raise MemoryError
                self.edges = chunks
                self.edges[self.edge_chunks] = <Edge*> malloc(CHUNK * sizeof(Edge))
                if self.edges[self.edge_chunks] == NULL:
                    raise MemoryError
                self.edge_chunks += 1
            id = self.edge_top
            self.edge_top += 1
        edge = self.edge(id)
        edge.referrer = referrer
        edge.referee = referee
        edge.part = part
        edge.dirty = edge.once = 0
        edge.next_out = self.slot(referrer).outs
        self.slot(referrer).outs = id
        edge.previous_in = 0
        edge.next_in = self.slot(referee).ins
        if edge.next_in:
            self.edge(edge.next_in).previous_in = id
        self.slot(referee).ins = id
        return id

    cdef int refer_once(self, uint32_t referrer, int kind, uint32_t namespace, uint32_t name, uint32_t part) except -1:
        """An edge that only some profiles need: made when one of them is rendered, so that others pay nothing for it."""
        cdef uint32_t referee = self.find_or_make(kind, namespace if namespace > EMPTY else ABSENT, name)
        cdef uint32_t hash = hash_of_edge(referrer, referee, part)
        cdef index_probe_t probe = index_probe(&self.once, hash)
        cdef uint32_t id = index_next(&probe)
        while id:
            if self.edge(id).referrer == referrer and self.edge(id).referee == referee and self.edge(id).part == part:
                return 0
            id = index_next(&probe)
        id = self.add_edge(referrer, referee, part)
        if not index_add(&self.once, hash, id):
            raise MemoryError
        self.edge(id).once = 1
        return 0

    cdef int unlink(self, uint32_t id) except -1:
        """Drops the edges of an object; names that nothing needs any more go with them."""
        cdef uint32_t at = self.slot(id).outs
        cdef uint32_t following
        cdef Edge* edge
        self.slot(id).outs = 0
        while at:
            edge = self.edge(at)
            following = edge.next_out
            if edge.once:
                index_remove(&self.once, hash_of_edge(edge.referrer, edge.referee, edge.part), at)
            if edge.previous_in:
                self.edge(edge.previous_in).next_in = edge.next_in
            else:
                self.slot(edge.referee).ins = edge.next_in
            if edge.next_in:
                self.edge(edge.next_in).previous_in = edge.previous_in
            edge.dirty = 0
            edge.next_out = self.edge_free
            self.edge_free = at
            self.settle(edge.referee)
            at = following
        return 0

    # ---- an object as a mapping ----

    cdef dict mapping(self, Schema* schema, const uint32_t* words, const uint32_t* fields):
        """The JSON object that a schema was read from; what is absent or null is left out."""
        cdef Field* field
        cdef int i
        cdef uint32_t j, word
        cdef const uint32_t* inner
        cdef list made
        result = {}
        for i in range(schema.count):
            field = &schema.fields[i]
            key = field.key.decode()
            if field.action == OBJECT:
                inside = self.mapping(field.inner, words, fields)
                if inside or (field.word != NO_WORD and fields[field.word]):
                    result[key] = inside
                continue
            if field.action == VERSION or field.word == NO_WORD:
                continue
            word = fields[field.word]
            if field.action == FIRST:
                inside = self.chosen(field, fields)
                if inside:
                    result[key] = [inside]
            elif word == ABSENT:
                continue
            elif field.action == TEXT:
                result[key] = self.symbols.string(word)
            elif field.action == NUMBER:
                result[key] = int(self.symbols.string(word))
            elif field.action == FLAG:
                result[key] = word == TRUE
            else:
                inner = words + (word & ~LITERAL)
                made = []
                for j in range(inner[0] & ~LITERAL):
                    if field.action == ITEMS:
                        made.append(self.mapping(field.inner, words, inner + 1 + j * field.inner.size))
                    elif field.action == TEXTS:
                        made.append(self.symbols.string(inner[1 + j]))
                    else:
                        made.append((self.symbols.string(inner[1 + 2 * j]), self.symbols.string(inner[2 + 2 * j])))
                result[key] = dict(made) if field.action == PAIRS else made
        return result

    cdef dict chosen(self, Field* field, const uint32_t* fields):
        """The one object of an array that was kept."""
        cdef Schema* schema = field.inner
        cdef Field* inner
        cdef int i, word
        found = {}
        for i in range(schema.count):
            inner = &schema.fields[i]
            word = inner.word - schema.source
            if 0 <= word < schema.copied and fields[field.word + word]:
                found[inner.key.decode()] = self.symbols.string(fields[field.word + word])
        if found:
            decider = schema.fields[0].key.decode()
            found[decider] = True if schema.equals == NULL else schema.equals.decode()
        return found


cdef inline uint32_t hash_of_edge(uint32_t referrer, uint32_t referee, uint32_t part) noexcept:
    cdef uint32_t[3] words = [referrer, referee, part]
    return hash_words(words, 3)
