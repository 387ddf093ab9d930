"""Label sets: the fields, with a line for each."""
from libc.stdint cimport uint32_t, uint64_t

from ._core cimport IdTable, Symbols
from ._index cimport index_t

cdef struct LabelShape:     # the names of a label set, in byte order of their text; one for each run of names
    uint32_t refs           # label sets, layouts, and plans of relabeling
    uint32_t weak           # of these, layouts and plans: they let go of a shape that nobody else has and nobody asks for
    uint32_t id
    uint32_t hash
    uint32_t count
    uint32_t names[1]       # symbols, owned

cdef struct Layout:         # how labels, in the order in which a role writes them, become a label set
    LabelShape* shape
    uint32_t hash
    uint32_t used           # since the sweep before
    uint32_t count          # labels as written; their names (owned), then for each name of the shape the place of its value
    uint32_t words[1]

cdef class Shapes(IdTable):
    cdef readonly Symbols symbols
    cdef index_t shape_index
    cdef LabelShape** shapes        # by id
    cdef uint32_t shape_top, shape_capacity
    cdef uint32_t* free_ids
    cdef uint32_t free_count
    cdef index_t layout_index
    cdef Layout** layouts           # by id, from 1 on
    cdef uint32_t layout_top
    cdef uint32_t layout_latest     # the one asked for last; 0: none
    cdef uint32_t layout_cursor     # of `forget_doomed`

    cdef Layout* layout(self, const uint32_t* names, uint32_t count) except NULL
    cdef bint is_layout(self, uint32_t id, const uint32_t* names, uint32_t count) noexcept
    cdef Layout* new_layout(self, const uint32_t* names, uint32_t count, uint32_t hash) except NULL
    cdef LabelShape* shape(self, const uint32_t* names, uint32_t count) except NULL
    cdef int grow_shapes(self) except -1
    cdef void drop_shape(self, LabelShape* shape) noexcept
    cdef void forget_layouts(self) noexcept
    cdef void forget_layout(self, uint32_t id) noexcept
    cdef void sort(self, uint32_t* places, uint32_t* scratch, const uint32_t* names, uint32_t count) noexcept
    cdef int compare(self, uint32_t first, uint32_t second) noexcept

cdef class Labels:
    cdef Shapes shapes
    cdef LabelShape* shape
    cdef uint32_t* ids              # the values: symbols, owned; one for each name of the shape
    cdef Py_hash_t hashed           # 0: not asked for yet

    cdef int position(self, object name) except -2

cdef Shapes shapes_of(Symbols symbols)
cdef Labels new_labels(Shapes shapes, LabelShape* shape, const uint32_t* values)
cdef Labels picked_labels(Shapes shapes, LabelShape* shape, const uint32_t* values, const uint32_t* places)
