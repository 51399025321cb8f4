"""Memory as LLVM IR, a part of the pool's module: large blocks are kept and handed out again.

Memory that is touched for the first time costs more than most of what is done with it: the system
finds pages, clears them, and lets the program wait at each. So a block of 4 MiB and more that is
given back is not freed. It waits in a table for somebody who takes about as much; meanwhile the
system may have its pages (``MADV_FREE``), so that nothing runs short for it. Blocks are memory of
the C library at any time, which may resize and free them. Where the table is full, or has more
bytes than its limit, blocks leave it, the oldest first.

``take_memory(size)`` and ``take_lines(size)`` are ``malloc``, the second for memory that begins
with a line of the cache; ``give_memory(memory)`` is ``free``, ``grow_memory(memory, before, size)``
is ``realloc`` to more. ``array_malloc``, ``array_calloc``, ``array_realloc`` and ``array_free`` are
for arrays of NumPy (``PyDataMemAllocator``).
"""

from __future__ import annotations

__all__ = ["LARGE", "MEMORY_EXTERNAL", "MEMORY_TEXT"]

LARGE = 1 << 22
"""From how many bytes on a block is kept. NumPy asks for huge pages from this size on."""

_SLOTS = 16
_LINE = 64
_HUGE_PAGES, _FREE = 14, 8
"""What ``madvise`` is told."""
_PAGE = 1 << 16
"""The largest size of pages that is in use."""

MEMORY_EXTERNAL = (
    "aligned_alloc",
    "calloc",
    "free",
    "madvise",
    "malloc",
    "malloc_usable_size",
    "memcpy",
    "realloc",
)
"""The external functions of this part."""


def _taking(name: str, small: str) -> str:
    """Return a function that takes a large block, or calls ``small`` for another one."""
    return f"""define ptr @{name}(i64 %size) nounwind {{
entry:
  %is_large = icmp uge i64 %size, {LARGE}
  br i1 %is_large, label %large, label %small
large:
  %block = call ptr @take_large(i64 %size)
  ret ptr %block
small:
  %memory = call ptr {small}i64 %size)
  ret ptr %memory
}}
"""


MEMORY_TEXT = f"""
; Where it is, how much there is, since when it waits.
%block = type {{ ptr, i64, i64 }}

@kept_limit = global i64 0
@kept = global i64 0
@kept_lock = internal global i32 0, align 64
@kept_clock = internal global i64 0
@kept_blocks = internal global [{_SLOTS} x %block] zeroinitializer, align 64

declare ptr @malloc(i64)
declare ptr @calloc(i64, i64)
declare ptr @realloc(ptr, i64)
declare ptr @aligned_alloc(i64, i64)
declare void @free(ptr)
declare i64 @malloc_usable_size(ptr)
declare ptr @memcpy(ptr, ptr, i64)
declare i32 @madvise(ptr, i64, i32)

define internal void @lock_kept() nounwind {{
entry:
  br label %try
try:
  %turn = phi i64 [ 0, %entry ], [ %later, %pause ], [ 0, %yield ]
  %pair = cmpxchg ptr @kept_lock, i32 0, i32 1 acquire monotonic
  %is_mine = extractvalue {{ i32, i1 }} %pair, 1
  br i1 %is_mine, label %done, label %wait
wait:
  %later = add i64 %turn, 1
  %patient = icmp slt i64 %later, 200
  br i1 %patient, label %pause, label %yield
pause:
  PAUSE
  br label %try
yield:
  %yielded = call i32 @sched_yield()
  br label %try
done:
  ret void
}}

define internal void @unlock_kept() nounwind {{
  store atomic i32 0, ptr @kept_lock release, align 4
  ret void
}}

; Tell the system something about the whole pages of a block.
define internal void @advise(ptr %memory, i64 %size, i32 %advice) nounwind {{
entry:
  %address = ptrtoint ptr %memory to i64
  %negative = sub i64 0, %address
  %skipped = urem i64 %negative, {_PAGE}
  %rest = sub i64 %size, %skipped
  %beyond = urem i64 %rest, {_PAGE}
  %whole = sub i64 %rest, %beyond
  %first = getelementptr i8, ptr %memory, i64 %skipped
  %told = call i32 @madvise(ptr %first, i64 %whole, i32 %advice)
  ret void
}}

; Take a block out of the table, under the lock.
define internal ptr @out(i64 %slot) nounwind {{
  %at = getelementptr [{_SLOTS} x %block], ptr @kept_blocks, i64 0, i64 %slot
  %size_at = getelementptr %block, ptr %at, i64 0, i32 1
  %memory = load ptr, ptr %at, align 8
  %size = load i64, ptr %size_at, align 8
  %before = load i64, ptr @kept, align 8
  %after = sub i64 %before, %size
  store i64 %after, ptr @kept, align 8
  store ptr null, ptr %at, align 8
  ret ptr %memory
}}

; Take out the block whose word %which is the least of those from %low to below %high; null if none.
define internal ptr @pick(i64 %which, i64 %low, i64 %high) nounwind {{
entry:
  call void @lock_kept()
  br label %one
one:
  %slot = phi i64 [ 0, %entry ], [ %following, %look ]
  %best = phi i64 [ -1, %entry ], [ %better, %look ]
  %least = phi i64 [ %high, %entry ], [ %lesser, %look ]
  %more = icmp slt i64 %slot, {_SLOTS}
  br i1 %more, label %look, label %decide
look:
  %at = getelementptr [{_SLOTS} x %block], ptr @kept_blocks, i64 0, i64 %slot
  %word_at = getelementptr i64, ptr %at, i64 %which
  %memory = load ptr, ptr %at, align 8
  %word = load i64, ptr %word_at, align 8
  %is_there = icmp ne ptr %memory, null
  %is_enough = icmp sge i64 %word, %low
  %is_less = icmp slt i64 %word, %least
  %fits = and i1 %is_enough, %is_less
  %taken = and i1 %is_there, %fits
  %better = select i1 %taken, i64 %slot, i64 %best
  %lesser = select i1 %taken, i64 %word, i64 %least
  %following = add i64 %slot, 1
  br label %one
decide:
  %none = icmp slt i64 %best, 0
  br i1 %none, label %done, label %found
found:
  %had = call ptr @out(i64 %best)
  br label %done
done:
  %result = phi ptr [ null, %decide ], [ %had, %found ]
  call void @unlock_kept()
  ret ptr %result
}}

; The kept block that fits best, null where each is too small, or larger by more than a fourth.
define internal ptr @fitting(i64 %size) nounwind {{
  %fourth = lshr i64 %size, 2
  %most = add i64 %size, %fourth
  %above = add i64 %most, 1
  %block = call ptr @pick(i64 1, i64 %size, i64 %above)
  ret ptr %block
}}

; The block that waits longest, null where there is none.
define internal ptr @oldest() nounwind {{
  %block = call ptr @pick(i64 2, i64 0, i64 {(1 << 63) - 1})
  ret ptr %block
}}

; Put a block into the table; 0 where there is no room.
define internal i1 @put(ptr %memory, i64 %size) nounwind {{
entry:
  %limit = load i64, ptr @kept_limit, align 8
  call void @lock_kept()
  %before = load i64, ptr @kept, align 8
  %after = add i64 %before, %size
  %is_small = icmp sle i64 %after, %limit
  br i1 %is_small, label %one, label %no
one:
  %slot = phi i64 [ 0, %entry ], [ %following, %next ]
  %more = icmp slt i64 %slot, {_SLOTS}
  br i1 %more, label %look, label %no
look:
  %at = getelementptr [{_SLOTS} x %block], ptr @kept_blocks, i64 0, i64 %slot
  %there = load ptr, ptr %at, align 8
  %is_free = icmp eq ptr %there, null
  br i1 %is_free, label %yes, label %next
next:
  %following = add i64 %slot, 1
  br label %one
yes:
  %size_at = getelementptr %block, ptr %at, i64 0, i32 1
  %since_at = getelementptr %block, ptr %at, i64 0, i32 2
  %now = load i64, ptr @kept_clock, align 8
  %then = add i64 %now, 1
  store i64 %then, ptr @kept_clock, align 8
  store i64 %then, ptr %since_at, align 8
  store i64 %size, ptr %size_at, align 8
  store ptr %memory, ptr %at, align 8
  store i64 %after, ptr @kept, align 8
  br label %no
no:
  %is_in = phi i1 [ 0, %entry ], [ 0, %one ], [ 1, %yes ]
  call void @unlock_kept()
  ret i1 %is_in
}}

; Free all that is kept.
define void @drop_kept() nounwind {{
entry:
  br label %one
one:
  %block = call ptr @oldest()
  %none = icmp eq ptr %block, null
  br i1 %none, label %done, label %drop
drop:
  call void @free(ptr %block)
  br label %one
done:
  ret void
}}

define internal ptr @take_large(i64 %size) nounwind noinline {{
entry:
  %kept = call ptr @fitting(i64 %size)
  %has_kept = icmp ne ptr %kept, null
  br i1 %has_kept, label %return, label %new
new:
  %made = call ptr @aligned_alloc(i64 {_LINE}, i64 %size)
  %has_made = icmp ne ptr %made, null
  br i1 %has_made, label %tell, label %again
again:
  call void @drop_kept()
  %last = call ptr @aligned_alloc(i64 {_LINE}, i64 %size)
  %has_last = icmp ne ptr %last, null
  br i1 %has_last, label %tell, label %return
tell:
  %fresh = phi ptr [ %made, %new ], [ %last, %again ]
  call void @advise(ptr %fresh, i64 %size, i32 {_HUGE_PAGES})
  br label %return
return:
  %result = phi ptr [ %kept, %entry ], [ null, %again ], [ %fresh, %tell ]
  ret ptr %result
}}

{_taking("take_memory", "@malloc(")}
{_taking("take_lines", f"@aligned_alloc(i64 {_LINE}, ")}
define void @give_memory(ptr %memory) nounwind {{
entry:
  %is_null = icmp eq ptr %memory, null
  br i1 %is_null, label %done, label %some
some:
  %size = call i64 @malloc_usable_size(ptr %memory)
  %is_small = icmp ult i64 %size, {LARGE}
  %limit = load i64, ptr @kept_limit, align 8
  %is_huge = icmp ugt i64 %size, %limit
  %is_other = or i1 %is_small, %is_huge
  br i1 %is_other, label %drop, label %keep
drop:
  call void @free(ptr %memory)
  br label %done
keep:
  call void @advise(ptr %memory, i64 %size, i32 {_FREE})
  br label %try
try:
  %is_in = call i1 @put(ptr %memory, i64 %size)
  br i1 %is_in, label %done, label %make_room
make_room:
  %old = call ptr @oldest()
  call void @free(ptr %old)
  br label %try
done:
  ret void
}}

; More room for what is in a block: another block that fits, or the system's way.
define ptr @grow_memory(ptr %memory, i64 %before, i64 %size) nounwind {{
entry:
  %is_large = icmp uge i64 %size, {LARGE}
  br i1 %is_large, label %large, label %resize
large:
  %kept = call ptr @fitting(i64 %size)
  %has_kept = icmp ne ptr %kept, null
  br i1 %has_kept, label %copy, label %resize
copy:
  %copied = call ptr @memcpy(ptr %kept, ptr %memory, i64 %before)
  call void @give_memory(ptr %memory)
  ret ptr %kept
resize:
  %moved = call ptr @realloc(ptr %memory, i64 %size)
  %has_moved = icmp ne ptr %moved, null
  %is_new = and i1 %is_large, %has_moved
  br i1 %is_new, label %tell, label %done
tell:
  call void @advise(ptr %moved, i64 %size, i32 {_HUGE_PAGES})
  br label %done
done:
  ret ptr %moved
}}

define ptr @array_malloc(ptr %context, i64 %size) nounwind {{
  %memory = call ptr @take_memory(i64 %size)
  ret ptr %memory
}}

define ptr @array_calloc(ptr %context, i64 %count, i64 %size) nounwind {{
  %memory = call ptr @calloc(i64 %count, i64 %size)
  ret ptr %memory
}}

define ptr @array_realloc(ptr %context, ptr %memory, i64 %size) nounwind {{
  %moved = call ptr @realloc(ptr %memory, i64 %size)
  ret ptr %moved
}}

define void @array_free(ptr %context, ptr %memory, i64 %size) nounwind {{
  call void @give_memory(ptr %memory)
  ret void
}}

; In a forked process nobody has the lock; what was kept stays with the parent.
define internal void @forget_kept() nounwind {{
entry:
  br label %one
one:
  %slot = phi i64 [ 0, %entry ], [ %following, %clear ]
  %more = icmp slt i64 %slot, {_SLOTS}
  br i1 %more, label %clear, label %done
clear:
  %at = getelementptr [{_SLOTS} x %block], ptr @kept_blocks, i64 0, i64 %slot
  store ptr null, ptr %at, align 8
  %following = add i64 %slot, 1
  br label %one
done:
  store i64 0, ptr @kept, align 8
  store atomic i32 0, ptr @kept_lock seq_cst, align 4
  ret void
}}
"""
