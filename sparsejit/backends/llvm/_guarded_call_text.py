"""The machine code of guarded calls, as LLVM IR.

``guarded`` is a function of Python's vectorcall convention whose ``self`` is a table in a ``bytes``
object. The table has, in 64-bit words: the number of arguments, the address of the entry, those of
``PyEval_SaveThread``, ``PyEval_RestoreThread`` and ``PyLong_FromLong``, the type of arrays, the
size of the entry's block and how many of its last words the entry writes; the number of arrays to
make of what it writes, the addresses of ``PyArray_NewFromDescr``, ``PyTuple_New``, ``Py_IncRef``,
``Py_DecRef`` and ``free``, and the object that frees and resizes what an array owns; then a
descriptor for each argument, one for each array to make, and the block's first content. The
descriptor of an argument is a kind and a place in the block; for an array to be compared (kind 0)
also its dtype, flags, rank, the number of strides to compare, extents and strides. That of an array
to make is its dtype, its rank and the place where the entry writes the address of its memory and
its extents.
"""

from __future__ import annotations

from sparsejit.backends.base import MISS
from sparsejit.backends.llvm._interface import OBJECT_HEAD

__all__ = ["BYTES_HEAD", "FLAGS", "HANDLER", "HEAD_WORDS", "TEXT", "TUPLE_HEAD"]

FLAGS = 0x501
"""The flags of an array that matter: contiguous (C), aligned, writeable; strides tell the rest."""

BYTES_HEAD = bytes.__basicsize__ - 1
"""Where the content of a ``bytes`` object begins."""

TUPLE_HEAD = tuple.__basicsize__
"""Where the items of a tuple begin."""

HEAD_WORDS = 15
"""The words of a table in front of the descriptors."""

HANDLER = OBJECT_HEAD + 72
"""Where an array keeps the object that frees and resizes its memory."""

_OWNS_MEMORY = 0x4
"""The flag of an array that frees its memory itself."""
_NEW = 0x501
"""The flags that a new array is made with: contiguous, aligned, writeable."""

TEXT = f"""
define ptr @guarded(ptr %self, ptr %args, i64 %count) {{
entry:
  %cursor = alloca ptr
  %number = alloca i64
  %at = alloca i64
  %table = getelementptr i8, ptr %self, i64 {BYTES_HEAD}
  %entry_at = getelementptr i64, ptr %table, i64 1
  %save_at = getelementptr i64, ptr %table, i64 2
  %restore_at = getelementptr i64, ptr %table, i64 3
  %box_at = getelementptr i64, ptr %table, i64 4
  %array_type_at = getelementptr i64, ptr %table, i64 5
  %words_at = getelementptr i64, ptr %table, i64 6
  %room_at = getelementptr i64, ptr %table, i64 7
  %fresh_at = getelementptr i64, ptr %table, i64 8
  %expected = load i64, ptr %table
  %function = load ptr, ptr %entry_at
  %save = load ptr, ptr %save_at
  %restore = load ptr, ptr %restore_at
  %box = load ptr, ptr %box_at
  %array_type = load i64, ptr %array_type_at
  %words = load i64, ptr %words_at
  %room = load i64, ptr %room_at
  %fresh = load i64, ptr %fresh_at
  %block = alloca i64, i64 %words
  %first = getelementptr i64, ptr %table, i64 {HEAD_WORDS}
  store ptr %first, ptr %cursor
  store i64 0, ptr %number
  %right_count = icmp eq i64 %count, %expected
  br i1 %right_count, label %skip, label %miss

skip:
  %k = load i64, ptr %number
  %all_skipped = icmp eq i64 %k, %count
  br i1 %all_skipped, label %template, label %skip_one
skip_one:
  %c = load ptr, ptr %cursor
  %skip_size = call i64 @size_of(ptr %c)
  %c_next = getelementptr i64, ptr %c, i64 %skip_size
  store ptr %c_next, ptr %cursor
  %k_next = add i64 %k, 1
  store i64 %k_next, ptr %number
  br label %skip

template:
  %to_make = load ptr, ptr %cursor
  %to_make_words = mul i64 %fresh, 3
  %source = getelementptr i64, ptr %to_make, i64 %to_make_words
  store i64 0, ptr %at
  br label %copy
copy:
  %w = load i64, ptr %at
  %copied = icmp eq i64 %w, %words
  br i1 %copied, label %arguments, label %copy_one
copy_one:
  %from = getelementptr i64, ptr %source, i64 %w
  %to = getelementptr i64, ptr %block, i64 %w
  %word = load i64, ptr %from
  store i64 %word, ptr %to
  %w_next = add i64 %w, 1
  store i64 %w_next, ptr %at
  br label %copy

arguments:
  store ptr %first, ptr %cursor
  store i64 0, ptr %number
  br label %argument
argument:
  %n = load i64, ptr %number
  %done = icmp eq i64 %n, %count
  br i1 %done, label %run, label %look
look:
  %d = load ptr, ptr %cursor
  %object_at = getelementptr ptr, ptr %args, i64 %n
  %object = load ptr, ptr %object_at
  %kind = load i64, ptr %d
  %place_at = getelementptr i64, ptr %d, i64 1
  %place = load i64, ptr %place_at
  %slot = getelementptr i64, ptr %block, i64 %place
  switch i64 %kind, label %next [ i64 0, label %seen
                                  i64 1, label %made
                                  i64 2, label %double
                                  i64 3, label %bytes ]
seen:
  %fits = call i1 @fits(ptr %d, ptr %object, i64 %array_type)
  br i1 %fits, label %made, label %miss
made:
  %address = ptrtoint ptr %object to i64
  store i64 %address, ptr %slot
  br label %next
double:
  %value_at = getelementptr i8, ptr %object, i64 {OBJECT_HEAD}
  %value = load i64, ptr %value_at
  store i64 %value, ptr %slot
  br label %next
bytes:
  %low_at = getelementptr i8, ptr %object, i64 {BYTES_HEAD}
  %high_at = getelementptr i8, ptr %object, i64 {BYTES_HEAD + 8}
  %low = load i64, ptr %low_at
  %high = load i64, ptr %high_at
  %slot_high = getelementptr i64, ptr %slot, i64 1
  store i64 %low, ptr %slot
  store i64 %high, ptr %slot_high
  br label %next
next:
  %size = call i64 @size_of(ptr %d)
  %d_next = getelementptr i64, ptr %d, i64 %size
  store ptr %d_next, ptr %cursor
  %n_next = add i64 %n, 1
  store i64 %n_next, ptr %number
  br label %argument

run:
  %state = call ptr %save()
  %status = call i32 %function(ptr %block)
  call void %restore(ptr %state)
  %has_fresh = icmp ne i64 %fresh, 0
  br i1 %has_fresh, label %make, label %no_fresh
make:
  %went_well = icmp eq i32 %status, 0
  br i1 %went_well, label %make_all, label %finish
make_all:
  %arrays = call ptr @new_arrays(ptr %table, ptr %to_make, ptr %block)
  ret ptr %arrays
no_fresh:
  %has_room = icmp ne i64 %room, 0
  br i1 %has_room, label %receive, label %finish
receive:
  %last = sub i64 %count, 1
  %receiver_at = getelementptr ptr, ptr %args, i64 %last
  %receiver = load ptr, ptr %receiver_at
  %data_at = getelementptr i8, ptr %receiver, i64 {OBJECT_HEAD}
  %data = load ptr, ptr %data_at
  %begin = sub i64 %words, %room
  store i64 0, ptr %at
  br label %hand_out
hand_out:
  %r = load i64, ptr %at
  %handed = icmp eq i64 %r, %room
  br i1 %handed, label %finish, label %hand_one
hand_one:
  %r_block = add i64 %begin, %r
  %r_from = getelementptr i64, ptr %block, i64 %r_block
  %r_to = getelementptr i64, ptr %data, i64 %r
  %r_word = load i64, ptr %r_from
  store i64 %r_word, ptr %r_to
  %r_next = add i64 %r, 1
  store i64 %r_next, ptr %at
  br label %hand_out

finish:
  %wide = sext i32 %status to i64
  br label %return
miss:
  br label %return
return:
  %answer = phi i64 [ %wide, %finish ], [ {MISS}, %miss ]
  %boxed = call ptr %box(i64 %answer)
  ret ptr %boxed
}}

define internal ptr @new_arrays(ptr %table, ptr %to_make, ptr %block) {{
entry:
  %array_type_at = getelementptr i64, ptr %table, i64 5
  %fresh_at = getelementptr i64, ptr %table, i64 8
  %new_array_at = getelementptr i64, ptr %table, i64 9
  %new_tuple_at = getelementptr i64, ptr %table, i64 10
  %keep_at = getelementptr i64, ptr %table, i64 11
  %drop_at = getelementptr i64, ptr %table, i64 12
  %free_at = getelementptr i64, ptr %table, i64 13
  %handler_at = getelementptr i64, ptr %table, i64 14
  %array_type = load ptr, ptr %array_type_at
  %fresh = load i64, ptr %fresh_at
  %new_array = load ptr, ptr %new_array_at
  %new_tuple = load ptr, ptr %new_tuple_at
  %keep = load ptr, ptr %keep_at
  %drop = load ptr, ptr %drop_at
  %free = load ptr, ptr %free_at
  %handler = load ptr, ptr %handler_at
  %tuple = call ptr %new_tuple(i64 %fresh)
  br label %next
next:
  %n = phi i64 [ 0, %entry ], [ %n_next, %made ], [ %n_next, %freed ]
  %found = phi ptr [ %tuple, %entry ], [ %found, %made ], [ null, %freed ]
  %n_next = add i64 %n, 1
  %done = icmp eq i64 %n, %fresh
  br i1 %done, label %return, label %one
one:
  %offset = mul i64 %n, 3
  %dtype_at = getelementptr i64, ptr %to_make, i64 %offset
  %rank_at = getelementptr i64, ptr %dtype_at, i64 1
  %place_at = getelementptr i64, ptr %dtype_at, i64 2
  %dtype = load ptr, ptr %dtype_at
  %rank_64 = load i64, ptr %rank_at
  %rank = trunc i64 %rank_64 to i32
  %place = load i64, ptr %place_at
  %memory_at = getelementptr i64, ptr %block, i64 %place
  %extents = getelementptr i64, ptr %memory_at, i64 1
  %memory = load ptr, ptr %memory_at
  %has_failed = icmp eq ptr %found, null
  br i1 %has_failed, label %freed, label %try
try:
  call void %keep(ptr %dtype)
  %array = call ptr %new_array(ptr %array_type, ptr %dtype, i32 %rank, ptr %extents, ptr null,
                               ptr %memory, i32 {_NEW}, ptr null)
  %is_missing = icmp eq ptr %array, null
  br i1 %is_missing, label %drop_all, label %made
made:
  %flags_at = getelementptr i8, ptr %array, i64 {OBJECT_HEAD + 48}
  %flags = load i32, ptr %flags_at
  %owning = or i32 %flags, {_OWNS_MEMORY}
  store i32 %owning, ptr %flags_at
  call void %keep(ptr %handler)
  %own_handler_at = getelementptr i8, ptr %array, i64 {HANDLER}
  store ptr %handler, ptr %own_handler_at
  %items = getelementptr i8, ptr %found, i64 {TUPLE_HEAD}
  %item = getelementptr ptr, ptr %items, i64 %n
  store ptr %array, ptr %item
  br label %next
drop_all:
  call void %drop(ptr %found)
  br label %freed
freed:
  call void %free(ptr %memory)
  br label %next
return:
  ret ptr %found
}}

define internal i64 @size_of(ptr %d) {{
  %kind = load i64, ptr %d
  %is_seen = icmp eq i64 %kind, 0
  br i1 %is_seen, label %seen, label %short
seen:
  %rank_at = getelementptr i64, ptr %d, i64 4
  %steps_at = getelementptr i64, ptr %d, i64 5
  %rank = load i64, ptr %rank_at
  %steps = load i64, ptr %steps_at
  %both = add i64 %rank, %steps
  %size = add i64 %both, 6
  ret i64 %size
short:
  ret i64 2
}}

define internal i1 @fits(ptr %d, ptr %object, i64 %array_type) {{
  %type_at = getelementptr i8, ptr %object, i64 {OBJECT_HEAD - 8}
  %type = load i64, ptr %type_at
  %is_array = icmp eq i64 %type, %array_type
  br i1 %is_array, label %array, label %no
array:
  %dtype_at = getelementptr i8, ptr %object, i64 {OBJECT_HEAD + 40}
  %flags_at = getelementptr i8, ptr %object, i64 {OBJECT_HEAD + 48}
  %rank_at = getelementptr i8, ptr %object, i64 {OBJECT_HEAD + 8}
  %dtype = load i64, ptr %dtype_at
  %all_flags = load i32, ptr %flags_at
  %flags_32 = and i32 %all_flags, {FLAGS}
  %flags = zext i32 %flags_32 to i64
  %rank_32 = load i32, ptr %rank_at
  %rank = zext i32 %rank_32 to i64
  %dtype_seen_at = getelementptr i64, ptr %d, i64 2
  %flags_seen_at = getelementptr i64, ptr %d, i64 3
  %rank_seen_at = getelementptr i64, ptr %d, i64 4
  %steps_at = getelementptr i64, ptr %d, i64 5
  %dtype_seen = load i64, ptr %dtype_seen_at
  %flags_seen = load i64, ptr %flags_seen_at
  %rank_seen = load i64, ptr %rank_seen_at
  %steps = load i64, ptr %steps_at
  %same_dtype = icmp eq i64 %dtype, %dtype_seen
  %same_flags = icmp eq i64 %flags, %flags_seen
  %same_rank = icmp eq i64 %rank, %rank_seen
  %same_two = and i1 %same_dtype, %same_flags
  %same = and i1 %same_two, %same_rank
  br i1 %same, label %numbers, label %no
numbers:
  %shape_at = getelementptr i8, ptr %object, i64 {OBJECT_HEAD + 16}
  %strides_at = getelementptr i8, ptr %object, i64 {OBJECT_HEAD + 24}
  %shape = load ptr, ptr %shape_at
  %strides = load ptr, ptr %strides_at
  %shape_seen = getelementptr i64, ptr %d, i64 6
  %strides_seen = getelementptr i64, ptr %shape_seen, i64 %rank
  %same_shape = call i1 @equal(ptr %shape, ptr %shape_seen, i64 %rank)
  br i1 %same_shape, label %steps_too, label %no
steps_too:
  %same_strides = call i1 @equal(ptr %strides, ptr %strides_seen, i64 %steps)
  ret i1 %same_strides
no:
  ret i1 false
}}

define internal i1 @equal(ptr %one, ptr %two, i64 %count) {{
entry:
  br label %head
head:
  %k = phi i64 [ 0, %entry ], [ %k_next, %more ]
  %done = icmp eq i64 %k, %count
  br i1 %done, label %yes, label %compare
compare:
  %one_at = getelementptr i64, ptr %one, i64 %k
  %two_at = getelementptr i64, ptr %two, i64 %k
  %a = load i64, ptr %one_at
  %b = load i64, ptr %two_at
  %same = icmp eq i64 %a, %b
  br i1 %same, label %more, label %no
more:
  %k_next = add i64 %k, 1
  br label %head
yes:
  ret i1 true
no:
  ret i1 false
}}
"""
