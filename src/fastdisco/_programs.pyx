"""What the rules do to targets of one shape, as far as it does not depend on values: which final label comes from which of them.

    values of a target -> slots -> questions, whose answers lead on -> ending: a verdict, or a shape and the slot of each value

A program is a tree, made of the ways that targets have taken: a node asks a rule about values, or which values are empty; at the end
of a way all is known that the rules do. It grows by tracing (`Relabeling.trace`), up to a bound; who strays from it has the rules run.
It owns its constants and final shapes, and nothing else: what else is in its slots is of the target followed last.
"""
import cython

from libc.stdint cimport uint8_t, uint32_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcmp, memcpy

from ._fields cimport ABSENT, EMPTY
from ._labels cimport Labels, Shapes, picked_labels
from ._steps cimport KEEP, Step


cdef inline int answer_of(Step step, const uint32_t* outcome) noexcept:
    """What of an outcome decides about the labels that there are after a rule."""
    if outcome[0] == ABSENT:        # also a condition's "no"
        return NO
    return NOTHING if outcome[0] == EMPTY and step.prometheus and step.kind != KEEP else YES


@cython.final
@cython.no_gc_clear     # freeing uses its references
cdef class Programs:
    """Makes, follows and frees the programs of one relabeling."""

    def __cinit__(self, Shapes shapes not None, list steps not None, int decided):
        cdef Step step
        cdef uint32_t most = 1
        self.shapes = shapes
        self.symbols = shapes.symbols
        self.steps = steps
        self.decided = decided
        for one in steps:
            step = <Step> one
            most = max(most, step.source_count, 0 if step.guard is None else step.guard.source_count)
        self.key = <uint32_t*> malloc(most * sizeof(uint32_t))
        if self.key == NULL:
            raise MemoryError

    def __dealloc__(self):
        free(self.key)
        free(self.empty)

    cdef Program* program(self, uint32_t values) except NULL:
        """An empty one for targets of so many values."""
        cdef Program* made = <Program*> calloc(1, sizeof(Program))
        if made == NULL:
            raise MemoryError
        made.values = values
        try:
            self.new_slots(made, FIRST_VALUE + values)
        except MemoryError:
            self.free(made)
            raise
        made.slots[EMPTY] = EMPTY
        made.fixed[EMPTY] = True    # of the symbols that are always there: the hold is for `free` alone
        self.symbols.hold(EMPTY)
        return made

    cdef void free(self, Program* program) noexcept:
        cdef uint32_t i
        if program == NULL:
            return
        self.free_node(program.root)
        for i in range(program.count):
            if program.fixed[i]:
                self.symbols.drop(program.slots[i])
        free(program.slots)
        free(program.fixed)
        free(program)

    cdef void free_node(self, Node* node) noexcept:
        cdef Case* case
        cdef int i
        if node == NULL:
            return
        for i in range(ANSWERS):
            self.free_node(node.nodes[i])
        while node.cases != NULL:
            case = node.cases
            node.cases = case.next
            self.free_node(<Node*> case.node)
            free(case)
        if node.ending.shape != NULL:
            node.ending.shape.weak -= 1
            self.shapes.drop_shape(node.ending.shape)
        free(node.ending.slots)
        free(node)

    cdef uint32_t new_slots(self, Program* program, uint32_t count) except? 0:
        """So many more, zeroed; gives the first."""
        cdef uint32_t first = program.count
        cdef uint32_t* slots
        cdef uint8_t* fixed
        cdef uint32_t i
        if first + count > program.capacity:
            slots = <uint32_t*> realloc(program.slots, (first + count + 8) * sizeof(uint32_t))
            if slots == NULL:
                raise MemoryError
            program.slots = slots
            fixed = <uint8_t*> realloc(program.fixed, first + count + 8)
            if fixed == NULL:
                raise MemoryError
            program.fixed = fixed
            program.capacity = first + count + 8
        for i in range(first, first + count):
            program.slots[i] = 0
            program.fixed[i] = False
        program.count += count
        return first

    cdef uint32_t constant(self, Program* program, uint32_t id) except 0:
        """The slot of a value that all targets have."""
        cdef uint32_t i
        for i in range(program.count):
            if program.fixed[i] and program.slots[i] == id:
                return i
        i = self.new_slots(program, 1)
        program.slots[i] = id
        program.fixed[i] = True
        self.symbols.hold(id)
        return i

    cdef Node* node(self, int kind, uint32_t count, const uint32_t* reads) except NULL:
        cdef Node* made = <Node*> calloc(1, sizeof(Node) + count * sizeof(uint32_t))
        if made == NULL:
            raise MemoryError
        made.kind = <uint8_t> kind
        made.count = count
        if count:
            memcpy(made.reads, reads, count * sizeof(uint32_t))
        return made

    cdef void load(self, Program* program, const uint32_t* values) noexcept:
        """The target that is to be followed."""
        memcpy(program.slots + FIRST_VALUE, values, program.values * sizeof(uint32_t))

    cdef uint32_t find_empties(self, Program* program, Node* node) except? 0xFFFFFFFF:
        """How many of the slots that a node asks about are empty; their places are in `empty`."""
        cdef uint32_t i
        cdef uint32_t found = 0
        cdef uint32_t* grown
        if node.count > self.empty_capacity:
            grown = <uint32_t*> realloc(self.empty, node.count * sizeof(uint32_t))
            if grown == NULL:
                raise MemoryError
            self.empty = grown
            self.empty_capacity = node.count
        for i in range(node.count):
            self.empty[found] = i
            found += program.slots[node.reads[i]] == EMPTY
        return found

    cdef Node** case_of(self, Node* node, uint32_t count, bint adds) except? NULL:
        """Where the answer in `empty` leads, or NULL; the place for it if it is to be added."""
        cdef Case* case = node.cases
        while case != NULL:
            if case.count == count and memcmp(case.places, self.empty, count * sizeof(uint32_t)) == 0:
                return <Node**> &case.node
            case = case.next
        if not adds:
            return NULL
        case = <Case*> malloc(sizeof(Case) + count * sizeof(uint32_t))
        if case == NULL:
            raise MemoryError
        case.node = NULL
        case.count = count
        memcpy(case.places, self.empty, count * sizeof(uint32_t))
        case.next = node.cases
        node.cases = case
        return <Node**> &case.node

    cdef Ending* follow(self, Program* program, bint is_decided) except? NULL:
        """The ending of the target that was loaded; NULL: no target has gone that way yet.

        With `is_decided` the rules of the filter are known to keep it.
        """
        cdef Node* node = program.root
        cdef Node** to
        cdef Step step
        cdef uint32_t i
        self.effort = 0
        while node != NULL:
            if node.kind == ENDS:
                return &node.ending
            if node.kind == EMPTIES:
                to = self.case_of(node, self.find_empties(program, node), False)
                node = NULL if to == NULL else to[0]
                continue
            step = <Step> self.steps[node.step]
            if is_decided and node.step < self.decided and (step.guard_drops if node.guard else step.kind == KEEP):
                node = node.nodes[YES]
                continue
            if node.guard:
                step = step.guard
            for i in range(node.count):
                self.key[i] = program.slots[node.reads[i]]
            self.effort += step.outcome(self.key, program.slots + node.result)
            node = node.nodes[answer_of(step, program.slots + node.result)]
        return NULL

    cdef Labels labels(self, Program* program, Ending* ending):
        """The final labels of the target that was followed to this ending."""
        return picked_labels(self.shapes, ending.shape, program.slots, ending.slots)
