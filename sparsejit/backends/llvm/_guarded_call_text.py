"""The machine code of guarded calls, as LLVM IR.

``guarded`` is a function of Python's vectorcall convention. Its ``self`` is a tuple whose first
item is a table in a ``bytes`` object; the others are what it has addresses of. In front stand the
words that ``HEAD`` names, then a descriptor for each part, one for each array to make of the
entry's memory, conditions, pairs of arrays that may share no memory, who is to be told of the call,
and the first content of the block that the entry takes: of these the head says where they begin.

A descriptor has its kind, its length, a place in the block, and what its kind needs:

- 0, an argument that is an array to be compared: dtype, flags, rank, the number of strides to
  compare, extents and strides;
- 1, an array that the caller has just made, 2, a number whose double is taken, 3, sixteen bytes,
  4, the array that receives what the entry writes: arguments that are not compared;
- 5, a sparse object: its mark. It is found among the looks (``backends/straight``), and its
  buffers follow as descriptors of kind 6, else like kind 0;
- 7, a number of one type, whose double is taken: the type;
- 8, a result of known extents: dtype, size in bytes, rank, extents. NumPy makes it, of memory that
  is kept where it is large.
"""

from __future__ import annotations

from sparsejit.backends.llvm._guarded_call_checks import CHECKS
from sparsejit.backends.llvm._guarded_call_results import RESULTS
from sparsejit.backends.llvm._guarded_call_table import (
    BYTES_HEAD,
    TUPLE_HEAD,
    Answer,
    Kind,
    fields,
)
from sparsejit.backends.llvm._interface import OBJECT_HEAD

__all__ = ["TEXT"]

_GUARDED = f"""
define ptr @guarded(ptr %self, ptr %args, i64 %count) {{
entry:
  %bytes_at = getelementptr i8, ptr %self, i64 {TUPLE_HEAD}
  %bytes_object = load ptr, ptr %bytes_at
  %table = getelementptr i8, ptr %bytes_object, i64 {BYTES_HEAD}
{fields("arguments", "parts", "words", "room", "parts_at", "template_at", "answer", "tallies")}
{fields("function", "array_type", "missed", as_type="ptr")}
{fields("save", "restore", "box", "keep", "drop", as_type="ptr")}
  %cursor = alloca ptr
  %number = alloca i64
  %at = alloca i64
  %used = alloca i64
  %num_held = alloca i64
  %num_made = alloca i64
  %buffer = alloca ptr
  %block = alloca i64, i64 %words
  %held = alloca ptr, i64 %parts
  %made = alloca ptr, i64 %parts
  store i64 0, ptr %num_held
  store i64 0, ptr %num_made
  %right_count = icmp eq i64 %count, %arguments
  br i1 %right_count, label %conditions, label %miss
conditions:
  %holds = call i1 @all_hold(ptr %table)
  br i1 %holds, label %template, label %miss

template:
  %is_told = icmp ne i64 %tallies, 0
  br i1 %is_told, label %look_at_clock, label %begin
look_at_clock:
  %now = call i64 @now(ptr %table)
  br label %begin
begin:
  %start = phi i64 [ 0, %template ], [ %now, %look_at_clock ]
  %source = getelementptr i64, ptr %table, i64 %template_at
  store i64 0, ptr %at
  br label %copy
copy:
  %w = load i64, ptr %at
  %copied = icmp eq i64 %w, %words
  br i1 %copied, label %all_parts, label %copy_one
copy_one:
  %from = getelementptr i64, ptr %source, i64 %w
  %to = getelementptr i64, ptr %block, i64 %w
  %word = load i64, ptr %from
  store i64 %word, ptr %to
  %w_next = add i64 %w, 1
  store i64 %w_next, ptr %at
  br label %copy

all_parts:
  %first = getelementptr i64, ptr %table, i64 %parts_at
  store ptr %first, ptr %cursor
  store i64 0, ptr %number
  store i64 0, ptr %used
  br label %part
part:
  %n = load i64, ptr %number
  %done = icmp eq i64 %n, %parts
  br i1 %done, label %last_checks, label %look
look:
  %d = load ptr, ptr %cursor
  %kind = load i64, ptr %d
  %size_at = getelementptr i64, ptr %d, i64 1
  %place_at = getelementptr i64, ptr %d, i64 2
  %detail = getelementptr i64, ptr %d, i64 3
  %size = load i64, ptr %size_at
  %place = load i64, ptr %place_at
  %slot = getelementptr i64, ptr %block, i64 %place
  %d_next = getelementptr i64, ptr %d, i64 %size
  store ptr %d_next, ptr %cursor
  %n_next = add i64 %n, 1
  store i64 %n_next, ptr %number
  switch i64 %kind, label %argument [ i64 {Kind.BUFFER}, label %of_sparse
                                      i64 {Kind.NEW}, label %new ]
argument:
  %u = load i64, ptr %used
  %u_next = add i64 %u, 1
  store i64 %u_next, ptr %used
  %object_at = getelementptr ptr, ptr %args, i64 %u
  %object = load ptr, ptr %object_at
  switch i64 %kind, label %part [ i64 {Kind.SEEN}, label %compare
                                  i64 {Kind.MADE}, label %address_of
                                  i64 {Kind.DOUBLE}, label %double
                                  i64 {Kind.WORD}, label %bytes
                                  i64 {Kind.SPARSE}, label %sparse
                                  i64 {Kind.NUMBER}, label %number_of ]
of_sparse:
  %b = load ptr, ptr %buffer
  %b_next = getelementptr ptr, ptr %b, i64 1
  store ptr %b_next, ptr %buffer
  %buffer_object = load ptr, ptr %b
  br label %compare
compare:
  %array = phi ptr [ %object, %argument ], [ %buffer_object, %of_sparse ]
  %fits = call i1 @fits(ptr %detail, ptr %array, ptr %array_type)
  br i1 %fits, label %address_of, label %release
address_of:
  %known = phi ptr [ %object, %argument ], [ %array, %compare ]
  %address = ptrtoint ptr %known to i64
  store i64 %address, ptr %slot
  br label %part
number_of:
  %type_at = getelementptr i8, ptr %object, i64 {OBJECT_HEAD - 8}
  %type = load i64, ptr %type_at
  %wanted_type = load i64, ptr %detail
  %same_type = icmp eq i64 %type, %wanted_type
  br i1 %same_type, label %double, label %release
double:
  %value_at = getelementptr i8, ptr %object, i64 {OBJECT_HEAD}
  %value = load i64, ptr %value_at
  store i64 %value, ptr %slot
  br label %part
bytes:
  %low_at = getelementptr i8, ptr %object, i64 {BYTES_HEAD}
  %high_at = getelementptr i8, ptr %object, i64 {BYTES_HEAD + 8}
  %low = load i64, ptr %low_at
  %high = load i64, ptr %high_at
  %slot_high = getelementptr i64, ptr %slot, i64 1
  store i64 %low, ptr %slot
  store i64 %high, ptr %slot_high
  br label %part
sparse:
  %mark = load i64, ptr %detail
  %look_found = call ptr @look_of(ptr %table, ptr %object, i64 %mark)
  %has_look = icmp ne ptr %look_found, null
  br i1 %has_look, label %hold, label %release
hold:
  ; Another thread may replace the look while the entry runs.
  call void %keep(ptr %look_found)
  %h = load i64, ptr %num_held
  %held_at = getelementptr ptr, ptr %held, i64 %h
  store ptr %look_found, ptr %held_at
  %h_next = add i64 %h, 1
  store i64 %h_next, ptr %num_held
  %buffers_at = getelementptr i8, ptr %look_found, i64 {TUPLE_HEAD + 16}
  %buffers = load ptr, ptr %buffers_at
  %items = getelementptr i8, ptr %buffers, i64 {TUPLE_HEAD}
  store ptr %items, ptr %buffer
  br label %part
new:
  %dtype = load ptr, ptr %detail
  %bytes_at_new = getelementptr i64, ptr %detail, i64 1
  %rank_at = getelementptr i64, ptr %detail, i64 2
  %extents = getelementptr i64, ptr %detail, i64 3
  %new_bytes = load i64, ptr %bytes_at_new
  %rank_64 = load i64, ptr %rank_at
  %rank = trunc i64 %rank_64 to i32
  %new_one = call ptr @new_array_of(ptr %table, ptr %dtype, i32 %rank, ptr %extents, i64 %new_bytes)
  %is_missing = icmp eq ptr %new_one, null
  br i1 %is_missing, label %release, label %keep_new
keep_new:
  %m = load i64, ptr %num_made
  %made_at = getelementptr ptr, ptr %made, i64 %m
  store ptr %new_one, ptr %made_at
  %m_next = add i64 %m, 1
  store i64 %m_next, ptr %num_made
  %new_address = ptrtoint ptr %new_one to i64
  store i64 %new_address, ptr %slot
  br label %part

last_checks:
  %apart = call i1 @all_apart(ptr %table, ptr %block)
  br i1 %apart, label %run, label %release
run:
  %state = call ptr %save()
  %status = call i32 %function(ptr %block)
  call void %restore(ptr %state)
  %went_well = icmp eq i32 %status, 0
  br i1 %went_well, label %results, label %failed
failed:
  %wide = sext i32 %status to i64
  %boxed = call ptr %box(i64 %wide)
  br label %release
results:
  switch i64 %answer, label %all_arrays [ i64 {Answer.STATUS}, label %status_only
                                          i64 {Answer.ARRAY}, label %one_array ]
one_array:
  %single = load ptr, ptr %made
  br label %tell
all_arrays:
  %arrays = call ptr @new_arrays(ptr %table, ptr %block, ptr %made)
  br label %tell
tell:
  %good = phi ptr [ %single, %one_array ], [ %arrays, %all_arrays ]
  store i64 0, ptr %num_made
  %is_good = icmp ne ptr %good, null
  %tells = and i1 %is_told, %is_good
  br i1 %tells, label %note, label %release
note:
  call void @note(ptr %table, i64 %start)
  br label %release

release:
  %out = phi ptr [ %good, %tell ], [ %good, %note ], [ %boxed, %failed ],
                 [ null, %new ],
                 [ %missed, %compare ], [ %missed, %number_of ], [ %missed, %sparse ],
                 [ %missed, %last_checks ]
  %all_held = load i64, ptr %num_held
  %all_made = load i64, ptr %num_made
  call void @drop_all(ptr %held, i64 %all_held, ptr %drop)
  call void @drop_all(ptr %made, i64 %all_made, ptr %drop)
  %has_missed = icmp eq ptr %out, %missed
  br i1 %has_missed, label %miss, label %return
return:
  ret ptr %out

status_only:
  %has_room = icmp ne i64 %room, 0
  br i1 %has_room, label %receive, label %zero
receive:
  %last = sub i64 %count, 1
  %receiver_at = getelementptr ptr, ptr %args, i64 %last
  %receiver = load ptr, ptr %receiver_at
  %data_at = getelementptr i8, ptr %receiver, i64 {OBJECT_HEAD}
  %data = load ptr, ptr %data_at
  %room_begin = sub i64 %words, %room
  store i64 0, ptr %at
  br label %hand_out
hand_out:
  %r = load i64, ptr %at
  %handed = icmp eq i64 %r, %room
  br i1 %handed, label %zero, label %hand_one
hand_one:
  %r_block = add i64 %room_begin, %r
  %r_from = getelementptr i64, ptr %block, i64 %r_block
  %r_to = getelementptr i64, ptr %data, i64 %r
  %r_word = load i64, ptr %r_from
  store i64 %r_word, ptr %r_to
  %r_next = add i64 %r, 1
  store i64 %r_next, ptr %at
  br label %hand_out
zero:
  %none_failed = call ptr %box(i64 0)
  ret ptr %none_failed

miss:
  call void %keep(ptr %missed)
  ret ptr %missed
}}
"""

TEXT = _GUARDED + CHECKS + RESULTS
