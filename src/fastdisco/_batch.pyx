"""Rendered targets: values by shape in one array, and Labels made of them on demand.

    role, key, labels in the order of a shape -> rows of targets -> Labels
"""
import cython

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, realloc

from ._core cimport Store
from ._fields cimport kind_number
from ._labels cimport LabelShape, new_labels, shapes_of


@cython.final
@cython.no_gc_clear     # freeing uses its references
cdef class Batch:
    """Rendered targets of some objects, and which parts of objects were rendered at all.

    Holds bare ids, so no symbol is freed while it is open: `close` it when its targets have been taken.
    """

    def __cinit__(self, Store store not None):
        self.store = store
        self.shapes = shapes_of(store.symbols)
        self.made = {}
        self.store.symbols.pins += 1

    def __dealloc__(self):
        self.shut()
        free(self.rows)
        free(self.found)
        free(self.values)
        free(self.touched)
        free(self.held)

    def __len__(self):
        """Targets rendered, for all roles and profiles together."""
        return self.target_count

    def close(self) -> None:
        """Lets go of symbols, shapes and slots; nothing can be taken afterwards."""
        self.shut()
        self.made = {}

    cdef int shut(self) except -1:
        cdef size_t i
        if self.closed or self.store is None:
            return 0
        self.closed = True
        self.store.symbols.pins -= 1
        for i in range(self.target_count):
            self.shapes.drop_shape(self.found[i].shape)
        for i in range(self.held_count):
            self.store.slot(self.held[i]).held -= 1
            self.store.settle(self.held[i])
        self.row_count = self.target_count = self.touched_count = self.held_count = 0
        return 0

    def keys(self, str role, below=None) -> list[int]:
        """Parts of that role's objects that were rendered, with targets or without; those before the key `below`."""
        cdef size_t i
        cdef int kind = kind_number(role)
        cdef uint64_t end = <uint64_t> -1 if below is None else <uint64_t> below
        return [self.touched[i].key for i in range(self.touched_count) if self.touched[i].kind == kind and self.touched[i].key < end]

    def key_set(self, str role, below=None) -> frozenset[int]:
        """The same as a set, made once."""
        wanted = (role, below)
        if wanted not in self.made:
            self.made[wanted] = frozenset(self.keys(role, below))
        return self.made[wanted]

    def targets(self, str role, int profile, below=None) -> list:
        """(key, ((position, Labels), ...)) of each part that has targets; the Labels are the same for whoever asks.

        A key is the slot's number and a part of its object: for endpoints and slices the first address that names a pod, else 0.
        A position tells apart the targets of one part: container or address, and port.
        """
        cdef size_t i
        cdef uint32_t j
        cdef Row* row
        cdef Target* target
        cdef int kind = kind_number(role)
        cdef list made = self.made.get((kind, profile))
        if made is None:
            made = []
            for i in range(self.row_count):
                row = &self.rows[i]
                if row.kind == kind and row.profile == profile and row.count:
                    part = []
                    for j in range(row.first, row.first + row.count):
                        target = &self.found[j]
                        part.append((target.ident, new_labels(self.shapes, target.shape, self.values + target.values)))
                    made.append((row.key, tuple(part)))
            self.made[(kind, profile)] = made
        if below is None:
            return made
        return [entry for entry in made if entry[0] < below]

    cdef int begin(self, uint64_t key, int kind, int profile) except -1:
        cdef Row* grown
        if self.row_count == self.row_capacity:
            self.row_capacity = self.row_capacity * 2 if self.row_capacity else 256
            grown = <Row*> realloc(self.rows, self.row_capacity * sizeof(Row))
            if grown == NULL:
                raise MemoryError
            self.rows = grown
        cdef Row* row = &self.rows[self.row_count]
        self.row_count += 1
        row.key = key
        row.kind = <uint8_t> kind
        row.profile = <uint8_t> profile
        row.first = <uint32_t> self.target_count
        row.count = 0
        return 0

    cdef int add(self, LabelShape* shape, const uint32_t* values, const uint32_t* places, uint64_t ident) except -1:
        """A target of the part begun last: its values in the order of the shape, by their places as written."""
        cdef uint32_t i
        cdef Target* targets
        cdef uint32_t* grown
        if self.target_count == self.target_capacity:
            self.target_capacity = self.target_capacity * 2 if self.target_capacity else 256
            targets = <Target*> realloc(self.found, self.target_capacity * sizeof(Target))
            if targets == NULL:
                raise MemoryError
            self.found = targets
        if self.value_count + shape.count > self.value_capacity:
            self.value_capacity = (self.value_count + shape.count) * 2
            grown = <uint32_t*> realloc(self.values, self.value_capacity * sizeof(uint32_t))
            if grown == NULL:
                raise MemoryError
            self.values = grown
        for i in range(shape.count):
            self.values[self.value_count + i] = values[places[i]]
        self.found[self.target_count].shape = shape
        self.found[self.target_count].ident = ident
        self.found[self.target_count].values = <uint32_t> self.value_count
        shape.refs += 1
        self.value_count += shape.count
        self.target_count += 1
        self.rows[self.row_count - 1].count += 1
        return 0

    cdef int touch(self, uint32_t slot, uint32_t part, int kind) except -1:
        cdef Touched* grown
        if self.touched_count == self.touched_capacity:
            self.touched_capacity = self.touched_capacity * 2 if self.touched_capacity else 256
            grown = <Touched*> realloc(self.touched, self.touched_capacity * sizeof(Touched))
            if grown == NULL:
                raise MemoryError
            self.touched = grown
        self.touched[self.touched_count].key = <uint64_t> slot << PART_BITS | part
        self.touched[self.touched_count].kind = <uint8_t> kind
        self.touched_count += 1
        return 0

    cdef int hold(self, uint32_t slot) except -1:
        cdef uint32_t* grown
        if self.held_count == self.held_capacity:
            self.held_capacity = self.held_capacity * 2 if self.held_capacity else 256
            grown = <uint32_t*> realloc(self.held, self.held_capacity * sizeof(uint32_t))
            if grown == NULL:
                raise MemoryError
            self.held = grown
        self.held[self.held_count] = slot
        self.held_count += 1
        self.store.slot(slot).held += 1
        return 0
