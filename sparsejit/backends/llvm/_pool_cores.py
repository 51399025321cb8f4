"""The cores of the pool of threads, as LLVM IR: which are allowed, and who stays off which.

The scheduler likes to wake a sleeper on the core of the thread that wakes it, where it has to wait
for just this thread. So before it is woken, its affinity is set to all allowed cores but that one
(where there are few; with many there is an idle one).
"""

from __future__ import annotations

__all__ = ["CORES_TEXT"]

CORES_TEXT = """\
; Look which cores are allowed; return how many. Where they have changed, workers are to move.
define internal i64 @look() nounwind {
entry:
  %mask = alloca [16 x i64], align 64
  call void @llvm.memset.p0.i64(ptr %mask, i8 0, i64 128, i1 false)
  %size = call i32 @sched_getaffinity(i32 0, i64 128, ptr %mask)
  %unknown = icmp slt i32 %size, 0
  br i1 %unknown, label %keep, label %word
keep:
  ret i64 1
word:
  %at = phi i64 [ 0, %entry ], [ %following, %word ]
  %total = phi i64 [ 0, %entry ], [ %sum, %word ]
  %other = phi i1 [ false, %entry ], [ %differs, %word ]
  %from = getelementptr i64, ptr %mask, i64 %at
  %to = getelementptr i64, ptr @allowed, i64 %at
  %now = load i64, ptr %from, align 8
  %then = load i64, ptr %to, align 8
  store i64 %now, ptr %to, align 8
  %different = icmp ne i64 %now, %then
  %differs = or i1 %other, %different
  %ones = call i64 @llvm.ctpop.i64(i64 %now)
  %sum = add i64 %total, %ones
  %following = add i64 %at, 1
  %more = icmp slt i64 %following, 16
  br i1 %more, label %word, label %compared
compared:
  %have = load i64, ptr @started, align 8
  br i1 %differs, label %worker, label %done
worker:
  %number = phi i64 [ 0, %compared ], [ %later, %reset ]
  %another = icmp slt i64 %number, %have
  br i1 %another, label %reset, label %done
reset:
  %avoids = getelementptr %worker, ptr @workers, i64 %number, i32 3
  store i32 -1, ptr %avoids, align 4
  %later = add i64 %number, 1
  br label %worker
done:
  ret i64 %sum
}
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

; Keep a worker off the core of the calling thread.
define internal void @move(ptr %me, i32 %cpu) nounwind {
entry:
  %mask = alloca [16 x i64], align 64
  %avoids = getelementptr %worker, ptr %me, i64 0, i32 3
  %avoided = load i32, ptr %avoids, align 4
  %same = icmp eq i32 %avoided, %cpu
  %odd = icmp ugt i32 %cpu, 1023
  %leave = or i1 %same, %odd
  br i1 %leave, label %done, label %set
set:
  store i32 %cpu, ptr %avoids, align 4
  call void @llvm.memcpy.p0.p0.i64(ptr %mask, ptr @allowed, i64 128, i1 false)
  %wide = zext i32 %cpu to i64
  %place = lshr i64 %wide, 6
  %within = and i64 %wide, 63
  %bit = shl i64 1, %within
  %cleared = xor i64 %bit, -1
  %word = getelementptr i64, ptr %mask, i64 %place
  %before = load i64, ptr %word, align 8
  %after = and i64 %before, %cleared
  store i64 %after, ptr %word, align 8
  %handle = getelementptr %worker, ptr %me, i64 0, i32 1
  %thread = load i64, ptr %handle, align 8
  %ignored = call i32 @pthread_setaffinity_np(i64 %thread, i64 128, ptr %mask)
  br label %done
done:
  ret void
}

"""
"""``look`` and ``move``, in the module of the pool."""
