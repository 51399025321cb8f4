"""What guarded calls compare, as LLVM IR: arrays, sparse objects and conditions.

Each function takes the table of a call or a part of it; ``_guarded_call_text`` says what it has.
"""

from __future__ import annotations

from sparsejit.backends.llvm._guarded_call_table import BYTES_HEAD, FLAGS, TUPLE_HEAD, fields
from sparsejit.backends.llvm._interface import OBJECT_HEAD

__all__ = ["CHECKS"]

_ARRAYS = f"""
define internal i1 @fits(ptr %d, ptr %object, ptr %array_type) {{
  %type_at = getelementptr i8, ptr %object, i64 {OBJECT_HEAD - 8}
  %type = load ptr, ptr %type_at
  %is_array = icmp eq ptr %type, %array_type
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
  %flags_seen_at = getelementptr i64, ptr %d, i64 1
  %rank_seen_at = getelementptr i64, ptr %d, i64 2
  %steps_at = getelementptr i64, ptr %d, i64 3
  %dtype_seen = load i64, ptr %d
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
  %shape_seen = getelementptr i64, ptr %d, i64 4
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

define internal i1 @all_apart(ptr %table, ptr %block) {{
entry:
{fields("pairs", "pairs_at")}
  %first = getelementptr i64, ptr %table, i64 %pairs_at
  br label %head
head:
  %k = phi i64 [ 0, %entry ], [ %k_next, %compare ]
  %one = phi ptr [ %first, %entry ], [ %one_next, %compare ]
  %apart = phi i1 [ true, %entry ], [ %both, %compare ]
  %done = icmp eq i64 %k, %pairs
  br i1 %done, label %return, label %compare
compare:
  %other = getelementptr i64, ptr %one, i64 3
  %one_next = getelementptr i64, ptr %one, i64 6
  %one_begin = call i64 @bound(ptr %block, ptr %one, i64 1)
  %one_end = call i64 @bound(ptr %block, ptr %one, i64 2)
  %other_begin = call i64 @bound(ptr %block, ptr %other, i64 1)
  %other_end = call i64 @bound(ptr %block, ptr %other, i64 2)
  %is_behind = icmp uge i64 %one_begin, %other_end
  %is_before = icmp uge i64 %other_begin, %one_end
  %is_apart = or i1 %is_behind, %is_before
  %both = and i1 %apart, %is_apart
  %k_next = add i64 %k, 1
  br label %head
return:
  ret i1 %apart
}}

define internal i64 @bound(ptr %block, ptr %d, i64 %which) {{
  %offset_at = getelementptr i64, ptr %d, i64 %which
  %offset = load i64, ptr %offset_at
  %place = load i64, ptr %d
  %slot = getelementptr i64, ptr %block, i64 %place
  %array = load ptr, ptr %slot
  %data_at = getelementptr i8, ptr %array, i64 {OBJECT_HEAD}
  %data = load i64, ptr %data_at
  %bound = add i64 %data, %offset
  ret i64 %bound
}}
"""

_SPARSE = f"""
define internal ptr @look_of(ptr %table, ptr %object, i64 %mark) {{
entry:
{fields("looks", "none", "find", "key_of", "dict_of", "clear", "drop", as_type="ptr")}
  %key = call ptr %key_of(ptr %object)
  %has_key = icmp ne ptr %key, null
  br i1 %has_key, label %search, label %raised
search:
  %look = call ptr %find(ptr %looks, ptr %key)
  call void %drop(ptr %key)
  %is_known = icmp ne ptr %look, null
  br i1 %is_known, label %open, label %no
open:
  %owner_at = getelementptr i8, ptr %look, i64 {TUPLE_HEAD}
  %bytes_at = getelementptr i8, ptr %look, i64 {TUPLE_HEAD + 8}
  %owner = load ptr, ptr %owner_at
  %bytes = load ptr, ptr %bytes_at
  %alive_at = getelementptr i8, ptr %owner, i64 {OBJECT_HEAD}
  %alive = load ptr, ptr %alive_at
  %words = getelementptr i8, ptr %bytes, i64 {BYTES_HEAD}
  %count_at = getelementptr i64, ptr %words, i64 1
  %first = getelementptr i64, ptr %words, i64 2
  %mark_seen = load i64, ptr %words
  %count = load i64, ptr %count_at
  %is_owner = icmp eq ptr %alive, %object
  %is_alike = icmp eq i64 %mark_seen, %mark
  %can_be = and i1 %is_owner, %is_alike
  br i1 %can_be, label %names, label %no
names:
  %has_names = icmp ne i64 %count, 0
  br i1 %has_names, label %attributes, label %yes
attributes:
  %dict = call ptr %dict_of(ptr %object, ptr null)
  %has_dict = icmp ne ptr %dict, null
  br i1 %has_dict, label %head, label %raised
head:
  %k = phi i64 [ 0, %attributes ], [ %k_next, %compare ]
  %d = phi ptr [ %first, %attributes ], [ %d_next, %compare ]
  %same = phi i1 [ true, %attributes ], [ %still, %compare ]
  %is_left = icmp ult i64 %k, %count
  %goes_on = and i1 %is_left, %same
  br i1 %goes_on, label %compare, label %decide
compare:
  %value_at = getelementptr i64, ptr %d, i64 1
  %name = load ptr, ptr %d
  %value = load ptr, ptr %value_at
  %found = call ptr %find(ptr %dict, ptr %name)
  %is_absent = icmp eq ptr %found, null
  %held = select i1 %is_absent, ptr %none, ptr %found
  %still = icmp eq ptr %held, %value
  %k_next = add i64 %k, 1
  %d_next = getelementptr i64, ptr %d, i64 2
  br label %head
decide:
  call void %drop(ptr %dict)
  br i1 %same, label %yes, label %no
yes:
  ret ptr %look
raised:
  call void %clear()
  br label %no
no:
  ret ptr null
}}
"""

_CONDITIONS = f"""
define internal i1 @all_hold(ptr %table) {{
entry:
{fields("conditions", "conditions_at")}
{fields("find", "read", "drop", as_type="ptr")}
  %answer = alloca ptr
  %first = getelementptr i64, ptr %table, i64 %conditions_at
  br label %head
head:
  %k = phi i64 [ 0, %entry ], [ %k_next, %more ]
  %d = phi ptr [ %first, %entry ], [ %d_next, %more ]
  %done = icmp eq i64 %k, %conditions
  br i1 %done, label %yes, label %one
one:
  %holder_at = getelementptr i64, ptr %d, i64 1
  %key_at = getelementptr i64, ptr %d, i64 2
  %value_at = getelementptr i64, ptr %d, i64 3
  %kind = load i64, ptr %d
  %holder = load ptr, ptr %holder_at
  %key = load ptr, ptr %key_at
  %value = load ptr, ptr %value_at
  %k_next = add i64 %k, 1
  %d_next = getelementptr i64, ptr %d, i64 4
  switch i64 %kind, label %entry_of [ i64 1, label %field
                                      i64 2, label %variable ]
entry_of:
  %item = call ptr %find(ptr %holder, ptr %key)
  br label %more_or_less
field:
  %offset = load i64, ptr %key_at
  %content_at = getelementptr i8, ptr %holder, i64 %offset
  %content = load ptr, ptr %content_at
  br label %more_or_less
variable:
  store ptr null, ptr %answer
  %status = call i32 %read(ptr %holder, ptr null, ptr %answer)
  %held = load ptr, ptr %answer
  %is_there = icmp ne ptr %held, null
  br i1 %is_there, label %forget, label %no
forget:
  call void %drop(ptr %held)
  br label %more_or_less
more_or_less:
  %found = phi ptr [ %item, %entry_of ], [ %content, %field ], [ %held, %forget ]
  %same = icmp eq ptr %found, %value
  br i1 %same, label %more, label %no
more:
  br label %head
yes:
  ret i1 true
no:
  ret i1 false
}}
"""

CHECKS = _ARRAYS + _SPARSE + _CONDITIONS
