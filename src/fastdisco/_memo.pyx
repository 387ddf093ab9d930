"""Remembers outcomes per tuple of ids, a bounded number of them, and only where that pays.

Keys are not owned: a sweep asks for what is doomed to be forgotten before it frees an id. Outcomes are owned.
"""
import cython

from libc.stdint cimport uint32_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcmp, memcpy

from ._core cimport IdTable, Symbols
from ._index cimport hash_words, index_add, index_free, index_next, index_probe, index_probe_t, index_remove

cdef enum:
    DOOMED = 0xFFFFFFFFu
    HASH = 0                # words of an entry
    USED = 1
    KEY = 2
    LATELY = 2              # in USED: since the sweep before
    JUDGED_AFTER = 8192     # look-ups between two judgements of the hit rate


@cython.final
@cython.no_gc_clear     # freeing uses its references
cdef class Memo(IdTable):
    """Outcomes of a pure function of some symbols."""

    def __cinit__(self, Symbols symbols not None, uint32_t width, uint32_t results, bint owns, uint32_t bound=65536, bint ages=False):
        self.symbols = symbols
        self.width = width
        self.results = results
        self.owns = owns
        self.ages = ages
        self.bound = bound
        self.stride = KEY + width + results
        symbols.tables.add(self)

    def __dealloc__(self):
        self.forget_all()
        free(self.entries)

    def __len__(self):
        """Outcomes remembered."""
        return self.index.count

    cdef uint32_t* find(self, const uint32_t* key) noexcept:
        """The outcome, or NULL."""
        cdef uint32_t id = self.recent[key[0] & (RECENT - 1)] if self.width == 1 else 0
        cdef uint32_t* entry
        if self.given_up:
            return NULL
        self.lookups += 1
        if id and id <= self.top:
            # the entry may be that of another key by now, or of none
            entry = self.entries + <size_t> id * self.stride
            if entry[USED] and entry[KEY] == key[0]:
                self.hits += 1
                entry[USED] = LATELY
                return entry + KEY + 1
        cdef uint32_t hash = hash_words(key, self.width)
        cdef index_probe_t probe = index_probe(&self.index, hash)
        while True:
            id = index_next(&probe)
            if id == 0:
                if self.lookups >= JUDGED_AFTER:
                    self.judge()
                return NULL
            entry = self.entries + <size_t> id * self.stride
            if memcmp(entry + KEY, key, self.width * sizeof(uint32_t)) == 0:
                self.hits += 1
                entry[USED] = LATELY
                if self.width == 1:
                    self.recent[key[0] & (RECENT - 1)] = id
                return entry + KEY + self.width

    cdef uint32_t* remember(self, const uint32_t* key, const uint32_t* outcome) except? NULL:
        """Keeps an outcome that `find` did not find; NULL if it is not kept."""
        cdef uint32_t id, i
        cdef uint32_t* entry
        cdef uint32_t* grown
        if self.given_up:
            return NULL
        if self.index.count >= self.bound:
            self.forget_all()
        if self.free:
            id = self.free
            self.free = (self.entries + <size_t> id * self.stride)[HASH]
        else:
            if self.top + 1 >= self.capacity:
                self.capacity = self.capacity * 2 if self.capacity else 32
                grown = <uint32_t*> realloc(self.entries, <size_t> self.capacity * self.stride * sizeof(uint32_t))
                if grown == NULL:
                    raise MemoryError
                self.entries = grown
            self.top += 1
            id = self.top
        entry = self.entries + <size_t> id * self.stride
        entry[HASH] = hash_words(key, self.width)
        entry[USED] = LATELY
        memcpy(entry + KEY, key, self.width * sizeof(uint32_t))
        memcpy(entry + KEY + self.width, outcome, self.results * sizeof(uint32_t))
        if self.owns:
            for i in range(self.results):
                self.symbols.hold(outcome[i])
        if not index_add(&self.index, entry[HASH], id):
            raise MemoryError
        return entry + KEY + self.width

    cdef void judge(self) noexcept:
        if self.hits * 10 < self.lookups:
            self.forget_all()
            self.given_up = True
        self.lookups = self.hits = 0

    cdef void forget(self, uint32_t id) noexcept:
        cdef uint32_t* entry = self.entries + <size_t> id * self.stride
        cdef uint32_t i
        index_remove(&self.index, entry[HASH], id)
        if self.owns:
            for i in range(self.results):
                self.symbols.drop(entry[KEY + self.width + i])
        entry[USED] = 0
        entry[HASH] = self.free
        self.free = id

    cdef void forget_all(self) noexcept:
        cdef uint32_t id, i
        cdef uint32_t* entry
        for id in range(1, self.top + 1):
            entry = self.entries + <size_t> id * self.stride
            if entry[USED] and self.owns:
                for i in range(self.results):
                    self.symbols.drop(entry[KEY + self.width + i])
        self.top = self.free = self.cursor = 0
        index_free(&self.index)

    cdef bint forget_doomed(self, Py_ssize_t* budget) noexcept:
        cdef uint32_t i
        cdef uint32_t* entry
        while self.cursor < self.top:
            if budget[0] <= 0:
                return True
            budget[0] -= 1
            self.cursor += 1
            entry = self.entries + <size_t> self.cursor * self.stride
            if entry[USED]:
                for i in range(self.width):
                    if self.symbols.at(entry[KEY + i]).refs == DOOMED:
                        self.forget(self.cursor)
                        break
                else:
                    # a label's name and its key, of which the name is made, would else keep each other
                    if self.ages and entry[USED] != LATELY and self.symbols.at(entry[KEY + self.width]).refs == 1:
                        self.forget(self.cursor)
                    else:
                        entry[USED] = 1
        self.cursor = 0
        return False
