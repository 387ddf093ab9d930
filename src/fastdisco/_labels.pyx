"""Label sets over symbols: a shape (the names) and an array of values.

    labels as written (names may repeat) -> layout, remembered by the run of names -> shape and values -> Labels
"""
import cython
from collections.abc import ItemsView, KeysView, Mapping, ValuesView

from libc.stdint cimport uint32_t, uint64_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcmp, memcpy

from ._core cimport IdTable, Symbol, Symbols
from ._bytes cimport hash_bytes
from ._index cimport hash_words, index_add, index_free, index_next, index_probe, index_probe_t, index_remove

cdef enum:
    MOST_LAYOUTS = 4096     # then all are forgotten: they are made again in microseconds, and names come and go


cdef Shapes shapes_of(Symbols symbols):
    """The one `Shapes` of these symbols."""
    if symbols.shapes is None:
        symbols.shapes = Shapes(symbols)
        symbols.tables.add(symbols.shapes)
    return symbols.shapes


@cython.final
@cython.no_gc_clear     # freeing uses its references
cdef class Shapes(IdTable):
    """The shapes of label sets, each once, and the layouts that lead to them."""

    def __cinit__(self, Symbols symbols not None):
        self.symbols = symbols

    def __dealloc__(self):
        self.forget_layouts()
        index_free(&self.layout_index)
        index_free(&self.shape_index)
        free(self.shapes)
        free(self.free_ids)
        free(self.layouts)

    def __len__(self):
        """Shapes that some label set or layout has."""
        return self.shape_index.count

    cdef Layout* layout(self, const uint32_t* names, uint32_t count) except NULL:
        """The layout of labels written in this order; valid until the next call."""
        # most targets are written like the one before
        if self.layout_latest and self.is_layout(self.layout_latest, names, count):
            return self.layouts[self.layout_latest]
        cdef uint32_t hash = hash_words(names, count)
        cdef index_probe_t probe = index_probe(&self.layout_index, hash)
        cdef uint32_t id
        while True:
            id = index_next(&probe)
            if id == 0:
                return self.new_layout(names, count, hash)
            if self.is_layout(id, names, count):
                self.layouts[id].used = 1
                self.layout_latest = id
                return self.layouts[id]

    cdef inline bint is_layout(self, uint32_t id, const uint32_t* names, uint32_t count) noexcept:
        return self.layouts[id].count == count and memcmp(self.layouts[id].words, names, count * sizeof(uint32_t)) == 0

    cdef Layout* new_layout(self, const uint32_t* names, uint32_t count, uint32_t hash) except NULL:
        """Sorts the names; of equal names the last one written gives the value."""
        cdef uint32_t i
        cdef uint32_t kept = 0
        if self.layout_top + 1 >= MOST_LAYOUTS:
            self.forget_layouts()
        if self.layouts == NULL:
            self.layouts = <Layout**> malloc(MOST_LAYOUTS * sizeof(Layout*))
            if self.layouts == NULL:
                raise MemoryError
        cdef Layout* made = <Layout*> malloc(sizeof(Layout) + 3 * count * sizeof(uint32_t))
        if made == NULL:
            raise MemoryError
        made.hash = hash
        made.count = count
        memcpy(made.words, names, count * sizeof(uint32_t))
        cdef uint32_t* places = made.words + count
        cdef uint32_t* unique = places + count
        for i in range(count):
            places[i] = i
        self.sort(places, unique, names, count)
        for i in range(count):
            if kept and unique[kept - 1] == names[places[i]]:
                kept -= 1
            unique[kept] = names[places[i]]
            places[kept] = places[i]
            kept += 1
        try:
            made.shape = self.shape(unique, kept)
        except MemoryError:
            free(made)
            raise
        made.shape.refs += 1
        made.shape.weak += 1
        made.used = 1
        for i in range(count):
            self.symbols.hold(names[i])
        self.layout_top += 1
        self.layouts[self.layout_top] = made
        if not index_add(&self.layout_index, hash, self.layout_top):
            raise MemoryError
        return made

    cdef void sort(self, uint32_t* places, uint32_t* scratch, const uint32_t* names, uint32_t count) noexcept:
        """Places by their names, by merging; of equal names the earlier place comes first."""
        cdef uint32_t* source = places
        cdef uint32_t* merged = scratch
        cdef uint32_t width = 1
        cdef uint32_t start, first, middle, second, end, i
        while width < count:
            for start in range(0, count, 2 * width):
                first = start
                middle = second = min(start + width, count)
                end = min(start + 2 * width, count)
                for i in range(start, end):
                    if second == end or (first < middle and self.compare(names[source[first]], names[source[second]]) <= 0):
                        merged[i] = source[first]
                        first += 1
                    else:
                        merged[i] = source[second]
                        second += 1
            source, merged = merged, source
            width *= 2
        if source != places:
            memcpy(places, source, count * sizeof(uint32_t))

    cdef int compare(self, uint32_t first, uint32_t second) noexcept:
        """Order of two symbols by their bytes."""
        cdef Symbol* a = self.symbols.at(first)
        cdef Symbol* b = self.symbols.at(second)
        cdef int order = memcmp(a.text, b.text, min(a.length, b.length))
        if order:
            return order
        return -1 if a.length < b.length else a.length > b.length

    cdef LabelShape* shape(self, const uint32_t* names, uint32_t count) except NULL:
        """The shape of these sorted names; without an owner yet if it is new."""
        cdef uint32_t hash = hash_words(names, count)
        cdef index_probe_t probe = index_probe(&self.shape_index, hash)
        cdef uint32_t id, i
        cdef LabelShape* made
        while True:
            id = index_next(&probe)
            if id == 0:
                break
            if self.shapes[id].count == count and memcmp(self.shapes[id].names, names, count * sizeof(uint32_t)) == 0:
                return self.shapes[id]
        if self.free_count:
            self.free_count -= 1
            id = self.free_ids[self.free_count]
        else:
            self.grow_shapes()
            self.shape_top += 1
            id = self.shape_top
        made = <LabelShape*> malloc(sizeof(LabelShape) + count * sizeof(uint32_t))
        if made == NULL:
            raise MemoryError
        made.refs = made.weak = 0
        made.id = id
        made.hash = hash
        made.count = count
        memcpy(made.names, names, count * sizeof(uint32_t))
        for i in range(count):
            self.symbols.hold(names[i])
        self.shapes[id] = made
        if not index_add(&self.shape_index, hash, id):
            raise MemoryError
        return made

    cdef int grow_shapes(self) except -1:
        cdef LabelShape** shapes
        cdef uint32_t* ids
        if self.shape_top + 1 >= self.shape_capacity:
            self.shape_capacity = self.shape_capacity * 2 if self.shape_capacity else 64
            shapes = <LabelShape**> realloc(self.shapes, self.shape_capacity * sizeof(LabelShape*))
            if shapes == NULL:
                raise MemoryError
            self.shapes = shapes
            ids = <uint32_t*> realloc(self.free_ids, self.shape_capacity * sizeof(uint32_t))
            if ids == NULL:
                raise MemoryError
            self.free_ids = ids
        return 0

    cdef void drop_shape(self, LabelShape* shape) noexcept:
        cdef uint32_t i
        shape.refs -= 1
        if shape.refs:
            return
        for i in range(shape.count):
            self.symbols.drop(shape.names[i])
        index_remove(&self.shape_index, shape.hash, shape.id)
        self.free_ids[self.free_count] = shape.id
        self.free_count += 1
        free(shape)

    cdef void forget_layouts(self) noexcept:
        while self.layout_top:
            self.forget_layout(self.layout_top)
        self.layout_cursor = 0

    cdef void forget_layout(self, uint32_t id) noexcept:
        """Drops one layout; the last one gets its id."""
        cdef Layout* layout = self.layouts[id]
        cdef Layout* last = self.layouts[self.layout_top]
        cdef uint32_t i
        self.layout_latest = 0
        index_remove(&self.layout_index, layout.hash, id)
        if layout != last:
            # if memory is short it is not found any more, and made again
            index_remove(&self.layout_index, last.hash, self.layout_top)
            index_add(&self.layout_index, last.hash, id)
            self.layouts[id] = last
        self.layout_top -= 1
        for i in range(layout.count):
            self.symbols.drop(layout.words[i])
        layout.shape.weak -= 1
        self.drop_shape(layout.shape)
        free(layout)

    cdef bint forget_doomed(self, Py_ssize_t* budget) noexcept:
        """Layouts own their names, so none is doomed: but those of shapes that nobody has and nobody has asked for are given up."""
        cdef Layout* layout
        while self.layout_cursor < self.layout_top:
            if budget[0] <= 0:
                return True
            budget[0] -= 1
            layout = self.layouts[self.layout_cursor + 1]
            if not layout.used and layout.shape.refs == layout.shape.weak:
                self.forget_layout(self.layout_cursor + 1)
            else:
                layout.used = 0
                self.layout_latest = 0      # so that asking is noticed
                self.layout_cursor += 1
        self.layout_cursor = 0
        return False


cdef bint making = False     # Labels can only be made here: without a shape they could not be read


cdef Labels bare_labels(Shapes shapes, LabelShape* shape):
    """With room for the ids, which the caller sets, and holds, at once."""
    global making
    cdef Labels made
    cdef uint32_t* ids = <uint32_t*> malloc(shape.count * sizeof(uint32_t) + 1)
    if ids == NULL:
        raise MemoryError
    making = True
    try:
        made = Labels.__new__(Labels)
    except MemoryError:
        free(ids)
        raise
    finally:
        making = False
    made.ids = ids
    made.shapes = shapes
    made.shape = shape
    shape.refs += 1
    return made


cdef Labels new_labels(Shapes shapes, LabelShape* shape, const uint32_t* values):
    cdef Labels made = bare_labels(shapes, shape)
    cdef uint32_t i
    for i in range(shape.count):
        made.ids[i] = values[i]
        shapes.symbols.hold(values[i])
    return made


cdef Labels picked_labels(Shapes shapes, LabelShape* shape, const uint32_t* values, const uint32_t* places):
    """The same of values that lie elsewhere, by the place of each."""
    cdef Labels made = bare_labels(shapes, shape)
    cdef uint32_t i
    for i in range(shape.count):
        made.ids[i] = values[places[i]]
        shapes.symbols.hold(made.ids[i])
    return made


@cython.final
@cython.no_gc
@cython.collection_type("mapping")     # for match statements, which a registered type alone does not reach
cdef class Labels:
    """The labels of one target: a read-only mapping of names to values, in the order of the names.

    It owns what it shows, so it may be kept and read on any thread, also after its object and its job are gone.
    """

    def __cinit__(self):
        if not making:
            raise TypeError("Labels are made by a Discovery")

    def __dealloc__(self):
        cdef uint32_t i
        if self.shape != NULL:
            for i in range(self.shape.count):
                self.shapes.symbols.drop(self.ids[i])
            self.shapes.drop_shape(self.shape)
        free(self.ids)

    cdef int position(self, object name) except -2:
        """Where in the shape a name stands, or -1."""
        cdef bytes text
        cdef uint32_t id, i
        if not isinstance(name, str):
            return -1
        text = (<str> name).encode("utf-8", "surrogatepass")
        id = self.shapes.symbols.find(<const char*> text, len(text), hash_bytes(<const char*> text, len(text), self.shapes.symbols.seed))
        if id:
            for i in range(self.shape.count):
                if self.shape.names[i] == id:
                    return <int> i
        return -1

    def __getitem__(self, name):
        cdef int at = self.position(name)
        if at < 0:
            raise KeyError(name)
        return self.shapes.symbols.string(self.ids[at])

    def get(self, name, default=None):
        """The value of a label, or `default`."""
        cdef int at = self.position(name)
        return default if at < 0 else self.shapes.symbols.string(self.ids[at])

    def __contains__(self, name):
        return self.position(name) >= 0

    def __len__(self):
        return self.shape.count

    def __iter__(self):
        cdef uint32_t i
        return iter([self.shapes.symbols.string(self.shape.names[i]) for i in range(self.shape.count)])

    def keys(self):
        """The names, sorted by their UTF-8 bytes."""
        return KeysView(self)

    def values(self):
        """The values, in the order of the names."""
        return ValuesView(self)

    def items(self):
        """(name, value) pairs, in the order of the names."""
        return ItemsView(self)

    def __eq__(self, other):
        cdef Labels that
        if isinstance(other, Labels):
            that = <Labels> other
            if that.shapes is self.shapes:
                return that.shape == self.shape and memcmp(that.ids, self.ids, self.shape.count * sizeof(uint32_t)) == 0
        if isinstance(other, Mapping):
            return dict(self) == dict(other)
        return NotImplemented

    def __hash__(self):
        # of the text, not of the ids: labels of two discoveries may be equal
        cdef uint64_t h = self.shape.count
        cdef uint32_t i
        cdef Symbol* symbol
        if self.hashed == 0:
            for i in range(self.shape.count):
                symbol = self.shapes.symbols.at(self.ids[i])
                h = (h ^ hash_bytes(symbol.text, symbol.length, 0)) * 0xD6E8FEB86659FD93u
                h ^= h >> 32
            self.hashed = <Py_hash_t> (h >> 1)
        return self.hashed

    def __reduce__(self):
        return dict, (dict(self),)

    def __repr__(self):
        return f"Labels({dict(self)!r})"


Mapping.register(Labels)
