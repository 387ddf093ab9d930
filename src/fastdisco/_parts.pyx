"""Targets by part of an object: those that a job has, found by key, and those that were just rendered, in the order of keys.

Plain memory rather than Python objects: garbage collections need not look at it. Labels own nothing that could lead back here.
"""
import cython
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF, Py_XDECREF
from libc.stdint cimport uint32_t, uint64_t
from libc.stdlib cimport calloc, free, qsort, realloc

from ._index cimport hash_words, index_add, index_free, index_next, index_probe, index_probe_t, index_remove


@cython.final
cdef class Parts:
    """The parts of which a job has targets."""

    def __dealloc__(self):
        cdef uint32_t i
        for i in range(1, self.count + 1):
            free_part(self.parts[i])
        free(self.parts)
        index_free(&self.index)

    cdef Part* find(self, uint64_t key) noexcept:
        """NULL if there is none."""
        cdef index_probe_t probe = index_probe(&self.index, hash_of(key))
        cdef uint32_t id
        while True:
            id = index_next(&probe)
            if id == 0:
                return NULL
            if self.parts[id].key == key:
                return self.parts[id]

    cdef int put(self, Part* part) except -1:
        """Takes a part over, in the place of the one that has its key."""
        cdef Part* before = self.find(part.key)
        if before != NULL:
            part.id = before.id
            self.parts[part.id] = part
            self.targets += part.count
            self.targets -= before.count
            free_part(before)
            return 0
        if self.count + 1 >= self.capacity:
            self.parts = <Part**> grown(self.parts, &self.capacity, sizeof(Part*))
        if not index_add(&self.index, hash_of(part.key), self.count + 1):
            raise MemoryError
        self.count += 1
        part.id = self.count
        self.parts[part.id] = part
        self.targets += part.count
        return 0

    cdef void remove(self, uint64_t key) noexcept:
        """Nothing happens if there is no such part. The last part gets its id."""
        cdef Part* part = self.find(key)
        cdef Part* last
        if part == NULL:
            return
        last = self.parts[self.count]
        index_remove(&self.index, hash_of(key), part.id)
        if last != part:
            index_remove(&self.index, hash_of(last.key), last.id)
            index_add(&self.index, hash_of(last.key), part.id)      # there is room: two were removed
            last.id = part.id
            self.parts[last.id] = last
        self.count -= 1
        self.targets -= part.count
        free_part(part)


@cython.final
cdef class Rendered:
    """What a batch has for one job: parts with the targets that are kept, also parts that have none any more.

    To be filled, then settled; a part that comes twice is what it was the last time. `keys` have no targets unless `parts` have some.
    """

    def __init__(self, keys=(), parts=()):
        for key in keys:
            self.begin(key)
        self.extend(parts)

    def __dealloc__(self):
        cdef uint32_t i
        for i in range(self.entry_count):
            Py_XDECREF(self.entries[i].labels)
        free(self.entries)
        free(self.runs)

    cdef int begin(self, uint64_t key) except -1:
        """A part, without targets so far."""
        if self.run_count == self.run_capacity:
            self.runs = <Run*> grown(self.runs, &self.run_capacity, sizeof(Run))
        self.runs[self.run_count] = Run(key, self.entry_count, 0)
        self.run_count += 1
        return 0

    cdef int add(self, uint64_t position, object labels) except -1:
        """A target of the part begun last."""
        if self.entry_count == self.entry_capacity:
            self.entries = <Entry*> grown(self.entries, &self.entry_capacity, sizeof(Entry))
        Py_INCREF(labels)
        self.entries[self.entry_count] = Entry(position, <PyObject*> labels, 0)
        self.entry_count += 1
        self.runs[self.run_count - 1].count += 1
        return 0

    cdef int extend(self, parts) except -1:
        """Adds (key, ((position, labels), ...)) of several parts."""
        for key, targets in parts:
            self.begin(key)
            for position, labels in targets:
                self.add(position, labels)
        return 0

    cdef int join(self, Rendered other) except -1:
        """Adds all parts of another one."""
        cdef uint32_t i
        for i in range(other.run_count):
            self.copy(other, i)
        return 0

    cdef int copy(self, Rendered other, uint32_t run) except -1:
        """A part of another one."""
        cdef uint32_t i
        self.begin(other.runs[run].key)
        for i in range(other.runs[run].first, other.runs[run].first + other.runs[run].count):
            self.add(other.entries[i].position, <object> other.entries[i].labels)
        return 0

    cdef void settle(self) noexcept:
        """Puts the parts in the order of their keys, each once."""
        cdef uint32_t i
        cdef uint32_t kept = 0
        cdef bint sorted = True
        for i in range(1, self.run_count):
            sorted = sorted and self.runs[i - 1].key < self.runs[i].key
        if sorted:
            return
        qsort(self.runs, self.run_count, sizeof(Run), order_of_runs)
        for i in range(self.run_count):
            if kept and self.runs[kept - 1].key == self.runs[i].key:
                kept -= 1
            self.runs[kept] = self.runs[i]
            kept += 1
        self.run_count = kept

    cdef uint32_t end_of_object(self, uint32_t start) noexcept:
        """Where the parts of the next object begin."""
        cdef uint32_t end = start + 1
        while end < self.run_count and self.runs[end].key >> SLOT == self.runs[start].key >> SLOT:
            end += 1
        return end

    cdef uint32_t count_of(self, uint32_t start, uint32_t end) noexcept:
        """Targets of these parts."""
        cdef uint32_t i
        cdef uint32_t count = 0
        for i in range(start, end):
            count += self.runs[i].count
        return count

    cdef list listed(self):
        """(key, ((position, labels), ...)) of each part that has targets."""
        cdef uint32_t i, j
        return [
            (self.runs[i].key, tuple([
                (self.entries[j].position, <object> self.entries[j].labels)
                for j in range(self.runs[i].first, self.runs[i].first + self.runs[i].count)
            ]))
            for i in range(self.run_count) if self.runs[i].count
        ]


cdef void* grown(void* block, uint32_t* capacity, size_t size) except NULL:
    """The block with room for more than twice as many elements of that size; what it held stays valid if memory is short."""
    cdef void* made = realloc(block, (<size_t> capacity[0] * 2 + 16) * size)
    if made == NULL:
        raise MemoryError
    capacity[0] = capacity[0] * 2 + 16
    return made


cdef Part* new_part(uint64_t key, uint32_t count) except NULL:
    """Its entries are still empty."""
    cdef Part* part = <Part*> calloc(1, sizeof(Part) + count * sizeof(Entry))
    if part == NULL:
        raise MemoryError
    part.key = key
    part.count = count
    return part


cdef void free_part(Part* part) noexcept:
    cdef uint32_t i
    for i in range(part.count):
        Py_XDECREF(part.entries[i].labels)
    free(part)


cdef inline uint32_t hash_of(uint64_t key) noexcept:
    cdef uint32_t[2] words = [<uint32_t> key, <uint32_t> (key >> 32)]
    return hash_words(words, 2)


cdef int order_of_runs(const void* first, const void* second) noexcept nogil:
    """By key; of equal ones the one begun first."""
    cdef const Run* a = <const Run*> first
    cdef const Run* b = <const Run*> second
    if a.key != b.key:
        return -1 if a.key < b.key else 1
    if a.first != b.first:
        return -1 if a.first < b.first else 1
    # both begin at the same entry, so the first of them has none
    return -1 if a.count < b.count else a.count > b.count
