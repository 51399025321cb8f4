"""What guarded calls give back, as LLVM IR: new arrays, and word to whoever counts calls.

Each function takes the table of a call; ``_guarded_call_text`` says what it has.
"""

from __future__ import annotations

from sparsejit.backends.llvm._guarded_call_table import HANDLER, TUPLE_HEAD, fields
from sparsejit.backends.llvm._interface import OBJECT_HEAD
from sparsejit.backends.llvm._memory_text import LARGE

__all__ = ["RESULTS"]

_OWNS_MEMORY = 0x4
"""The flag of an array that frees its memory itself."""
_NEW = 0x501
"""The flags that a new array is made with: contiguous, aligned, writeable."""

_RESULTS = f"""
define internal ptr @new_arrays(ptr %table, ptr %block, ptr %made_first) {{
entry:
{fields("fresh", "fresh_at", "num_made")}
{fields("new_tuple", "drop", "free", as_type="ptr")}
  %to_make = getelementptr i64, ptr %table, i64 %fresh_at
  %size = add i64 %fresh, %num_made
  %tuple = call ptr %new_tuple(i64 %size)
  %has_tuple = icmp ne ptr %tuple, null
  br i1 %has_tuple, label %put_in, label %drop_made
drop_made:
  call void @drop_all(ptr %made_first, i64 %num_made, ptr %drop)
  br label %next
put_in:
  %p = phi i64 [ 0, %entry ], [ %p_next, %put_one ]
  %all_in = icmp eq i64 %p, %num_made
  br i1 %all_in, label %next, label %put_one
put_one:
  %made_at = getelementptr ptr, ptr %made_first, i64 %p
  %made_array = load ptr, ptr %made_at
  %made_items = getelementptr i8, ptr %tuple, i64 {TUPLE_HEAD}
  %made_item = getelementptr ptr, ptr %made_items, i64 %p
  store ptr %made_array, ptr %made_item
  %p_next = add i64 %p, 1
  br label %put_in
next:
  %n = phi i64 [ 0, %put_in ], [ 0, %drop_made ], [ %n_next, %made ], [ %n_next, %freed ]
  %found = phi ptr [ %tuple, %put_in ], [ null, %drop_made ], [ %found, %made ], [ null, %freed ]
  %n_next = add i64 %n, 1
  %done = icmp eq i64 %n, %fresh
  br i1 %done, label %return, label %one
one:
  %offset = mul i64 %n, 4
  %dtype_at = getelementptr i64, ptr %to_make, i64 %offset
  %rank_at = getelementptr i64, ptr %dtype_at, i64 1
  %place_at = getelementptr i64, ptr %dtype_at, i64 2
  %item_at = getelementptr i64, ptr %dtype_at, i64 3
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
  %item_size = load i64, ptr %item_at
  %bytes = call i64 @size_of(i64 %rank_64, ptr %extents, i64 %item_size)
  %array = call ptr @owning_array(ptr %table, ptr %dtype, i32 %rank, ptr %extents, i64 %bytes,
                                  ptr %memory)
  %is_missing = icmp eq ptr %array, null
  br i1 %is_missing, label %drop_tuple, label %made
made:
  %items = getelementptr i8, ptr %found, i64 {TUPLE_HEAD}
  %item_number = add i64 %num_made, %n
  %item = getelementptr ptr, ptr %items, i64 %item_number
  store ptr %array, ptr %item
  br label %next
drop_tuple:
  call void %drop(ptr %found)
  br label %freed
freed:
  call void %free(ptr %memory)
  br label %next
return:
  ret ptr %found
}}

define internal void @drop_all(ptr %objects, i64 %count, ptr %drop) {{
entry:
  br label %head
head:
  %k = phi i64 [ 0, %entry ], [ %k_next, %one ]
  %done = icmp eq i64 %k, %count
  br i1 %done, label %return, label %one
one:
  %object_at = getelementptr ptr, ptr %objects, i64 %k
  %object = load ptr, ptr %object_at
  call void %drop(ptr %object)
  %k_next = add i64 %k, 1
  br label %head
return:
  ret void
}}
"""

_ARRAYS = f"""
; An array of this memory, which the array frees; null where there is none, and nothing is freed.
define internal ptr @owning_array(ptr %table, ptr %dtype, i32 %rank, ptr %extents, i64 %bytes,
                                  ptr %memory) {{
entry:
{fields("array_type", "new_array", "keep", "handler", "large_handler", as_type="ptr")}
  call void %keep(ptr %dtype)
  %array = call ptr %new_array(ptr %array_type, ptr %dtype, i32 %rank, ptr %extents, ptr null,
                               ptr %memory, i32 {_NEW}, ptr null)
  %is_missing = icmp eq ptr %array, null
  br i1 %is_missing, label %return, label %made
made:
  %flags_at = getelementptr i8, ptr %array, i64 {OBJECT_HEAD + 48}
  %flags = load i32, ptr %flags_at
  %owning = or i32 %flags, {_OWNS_MEMORY}
  store i32 %owning, ptr %flags_at
  %is_large = icmp uge i64 %bytes, {LARGE}
  %own_handler = select i1 %is_large, ptr %large_handler, ptr %handler
  call void %keep(ptr %own_handler)
  %own_handler_at = getelementptr i8, ptr %array, i64 {HANDLER}
  store ptr %own_handler, ptr %own_handler_at
  br label %return
return:
  ret ptr %array
}}

; A new array: of kept memory where it is large, of NumPy's where it is not, or there is none.
define internal ptr @new_array_of(ptr %table, ptr %dtype, i32 %rank, ptr %extents, i64 %bytes) {{
entry:
{fields("array_type", "new_array", "keep", "take", "free", as_type="ptr")}
  %is_large = icmp uge i64 %bytes, {LARGE}
  %has_take = icmp ne ptr %take, null
  %is_kept = and i1 %is_large, %has_take
  br i1 %is_kept, label %large, label %small
large:
  %memory = call ptr %take(i64 %bytes)
  %has_memory = icmp ne ptr %memory, null
  br i1 %has_memory, label %own, label %small
own:
  %large_one = call ptr @owning_array(ptr %table, ptr %dtype, i32 %rank, ptr %extents, i64 %bytes,
                                      ptr %memory)
  %is_missing = icmp eq ptr %large_one, null
  br i1 %is_missing, label %drop, label %return
drop:
  call void %free(ptr %memory)
  br label %return
small:
  call void %keep(ptr %dtype)
  %small_one = call ptr %new_array(ptr %array_type, ptr %dtype, i32 %rank, ptr %extents, ptr null,
                                   ptr null, i32 0, ptr null)
  br label %return
return:
  %array = phi ptr [ %large_one, %own ], [ null, %drop ], [ %small_one, %small ]
  ret ptr %array
}}

define internal i64 @size_of(i64 %rank, ptr %extents, i64 %item_size) {{
entry:
  br label %head
head:
  %k = phi i64 [ 0, %entry ], [ %k_next, %one ]
  %size = phi i64 [ %item_size, %entry ], [ %more, %one ]
  %done = icmp eq i64 %k, %rank
  br i1 %done, label %return, label %one
one:
  %extent_at = getelementptr i64, ptr %extents, i64 %k
  %extent = load i64, ptr %extent_at
  %more = mul i64 %size, %extent
  %k_next = add i64 %k, 1
  br label %head
return:
  ret i64 %size
}}
"""

_TALLIES = f"""
define internal i64 @now(ptr %table) {{
{fields("clock_number")}
{fields("clock", as_type="ptr")}
  %time = alloca [2 x i64]
  %number = trunc i64 %clock_number to i32
  %status = call i32 %clock(i32 %number, ptr %time)
  %rest_at = getelementptr i64, ptr %time, i64 1
  %seconds = load i64, ptr %time
  %rest = load i64, ptr %rest_at
  %whole = mul i64 %seconds, 1000000000
  %all = add i64 %whole, %rest
  ret i64 %all
}}

define internal void @note(ptr %table, i64 %start) {{
entry:
{fields("tallies", "tallies_at")}
{fields("put", "keep", as_type="ptr")}
  %end = call i64 @now(ptr %table)
  %duration = sub i64 %end, %start
  %told = getelementptr i64, ptr %table, i64 %tallies_at
  %hits_at = load ptr, ptr %told
  %call_at = getelementptr i64, ptr %told, i64 1
  %call = load ptr, ptr %call_at
  %first = getelementptr i64, ptr %told, i64 2
  %hits = load i64, ptr %hits_at
  %more_hits = add i64 %hits, 1
  store i64 %more_hits, ptr %hits_at
  br label %head
head:
  %k = phi i64 [ 0, %entry ], [ %k_next, %one ]
  %d = phi ptr [ %first, %entry ], [ %d_next, %one ]
  %done = icmp eq i64 %k, %tallies
  br i1 %done, label %return, label %one
one:
  %duration_at_at = getelementptr i64, ptr %d, i64 1
  %last = load ptr, ptr %d
  %duration_at = load ptr, ptr %duration_at_at
  store i64 %duration, ptr %duration_at
  call void %keep(ptr %call)
  %status = call i32 %put(ptr %last, i64 0, ptr %call)
  %k_next = add i64 %k, 1
  %d_next = getelementptr i64, ptr %d, i64 2
  br label %head
return:
  ret void
}}
"""

RESULTS = _RESULTS + _ARRAYS + _TALLIES
