"""The pool of threads as LLVM IR: one module a process, which kernels call.

``run(work, closure, chunks)`` calls ``work(closure, chunk, chunks)`` for each chunk, on this thread
and on the workers that come in time. Workers are started by the first round that may use them. One
that has no round spins for some 50 us, then sleeps on a semaphore. A round is *open* while its
bit in ``gate`` is set; a worker joins by a compare-and-swap that counts it in, so that the round
cannot end before it has left. Whoever finds the pool busy (another Python thread has a round) works
alone: chunks and their results are the same.
"""

from __future__ import annotations

from sparsejit.backends.llvm._memory_text import MEMORY_EXTERNAL, MEMORY_TEXT
from sparsejit.backends.llvm._pool_cores import CORES_TEXT

__all__ = ["MOST_THREADS", "POOL_EXTERNAL", "pool_text"]

MOST_THREADS = 256
"""The largest number of threads, the calling one included."""

POOL_EXTERNAL = (
    *MEMORY_EXTERNAL,
    "pthread_create",
    "pthread_detach",
    "pthread_setaffinity_np",
    "pthread_sigmask",
    "sched_getaffinity",
    "sched_getcpu",
    "sched_yield",
    "sem_init",
    "sem_post",
    "sem_wait",
    "sigfillset",
)
"""The external functions of the pool."""

_TEXT = """
%worker = type { [64 x i8], i64, i32, i32, [48 x i8] }

@limit = global i64 1
@least = global i64 0
@busy = internal global i32 0, align 64
@gate = internal global i64 0, align 64
@next = internal global i64 0, align 64
@status = internal global i32 0, align 64
@work = internal global ptr null
@closure = internal global ptr null
@chunks = internal global i64 0
@started = global i64 0
@threads = global i64 1
@allowed = internal global [16 x i64] zeroinitializer, align 64
@workers = internal global [MOST x %worker] zeroinitializer, align 64

declare i32 @sem_init(ptr, i32, i32)
declare i32 @sem_wait(ptr)
declare i32 @sem_post(ptr)
declare i32 @sched_yield()
declare i32 @sched_getcpu()
declare i32 @sched_getaffinity(i32, i64, ptr)
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_detach(i64)
declare i32 @pthread_setaffinity_np(i64, i64, ptr)
declare i32 @pthread_sigmask(i32, ptr, ptr)
declare i32 @sigfillset(ptr)
declare i64 @llvm.ctpop.i64(i64)
declare i64 @llvm.umin.i64(i64, i64)
DECLARE_PAUSE

; How many threads to use for so much work: more than one where it pays, and cores are allowed.
define i64 @count(i64 %work) nounwind {
entry:
  %least = load i64, ptr @least, align 8
  %few = icmp slt i64 %work, %least
  %limit = load i64, ptr @limit, align 8
  %single = icmp ult i64 %limit, 2
  %alone = or i1 %few, %single
  br i1 %alone, label %serial, label %several
serial:
  ret i64 1
several:
  %cores = call i64 @look()
  %made = call i64 @llvm.umin.i64(i64 %cores, i64 %limit)
  store i64 %made, ptr @threads, align 8
  ret i64 %made
}

; Take chunks until none is left or one has failed.
define internal void @take() nounwind {
entry:
  %work = load ptr, ptr @work, align 8
  %closure = load ptr, ptr @closure, align 8
  %chunks = load i64, ptr @chunks, align 8
  br label %one
one:
  %chunk = atomicrmw add ptr @next, i64 1 monotonic
  %more = icmp slt i64 %chunk, %chunks
  br i1 %more, label %do, label %done
do:
  %status = call i32 %work(ptr %closure, i64 %chunk, i64 %chunks)
  %failed = icmp ne i32 %status, 0
  br i1 %failed, label %fail, label %one
fail:
  store atomic i32 %status, ptr @status monotonic, align 4
  store atomic i64 %chunks, ptr @next monotonic, align 8
  br label %done
done:
  ret void
}

define internal i32 @alone(ptr %work, ptr %closure, i64 %chunks) nounwind {
entry:
  br label %one
one:
  %chunk = phi i64 [ 0, %entry ], [ %following, %do ]
  %more = icmp slt i64 %chunk, %chunks
  br i1 %more, label %do, label %good
do:
  %status = call i32 %work(ptr %closure, i64 %chunk, i64 %chunks)
  %following = add i64 %chunk, 1
  %failed = icmp ne i32 %status, 0
  br i1 %failed, label %bad, label %one
good:
  ret i32 0
bad:
  ret i32 %status
}

define internal ptr @serve(ptr %me) nounwind {
entry:
  %asleep = getelementptr %worker, ptr %me, i64 0, i32 2
  br label %idle
idle:
  %seen = phi i64 [ 0, %entry ], [ %seen, %woken ], [ %seen, %early ], [ %round, %leave ]
  br label %spin
spin:
  %turn = phi i64 [ 0, %idle ], [ %later, %pause ]
  %gate = load atomic i64, ptr @gate acquire, align 8
  %bit = and i64 %gate, 32768
  %open = icmp ne i64 %bit, 0
  %round = lshr i64 %gate, 16
  %fresh = icmp ne i64 %round, %seen
  %wanted = and i1 %open, %fresh
  br i1 %wanted, label %join, label %pause
pause:
  PAUSE
  %later = add i64 %turn, 1
  %patient = icmp slt i64 %later, 2000
  br i1 %patient, label %spin, label %sleep
join:
  %joined = add i64 %gate, 1
  %pair = cmpxchg ptr @gate, i64 %gate, i64 %joined seq_cst monotonic
  %is_in = extractvalue { i64, i1 } %pair, 1
  br i1 %is_in, label %inside, label %pause
inside:
  call void @take()
  br label %leave
leave:
  %before = atomicrmw sub ptr @gate, i64 1 release
  br label %idle
sleep:
  store atomic i32 1, ptr %asleep seq_cst, align 4
  %gate2 = load atomic i64, ptr @gate seq_cst, align 8
  %bit2 = and i64 %gate2, 32768
  %open2 = icmp ne i64 %bit2, 0
  %round2 = lshr i64 %gate2, 16
  %fresh2 = icmp ne i64 %round2, %seen
  %wanted2 = and i1 %open2, %fresh2
  br i1 %wanted2, label %rise, label %wait
rise:
  %was = atomicrmw xchg ptr %asleep, i32 0 seq_cst
  %early_up = icmp eq i32 %was, 1
  br i1 %early_up, label %early, label %wait
early:
  br label %idle
wait:
  %result = call i32 @sem_wait(ptr %me)
  %interrupted = icmp ne i32 %result, 0
  br i1 %interrupted, label %wait, label %woken
woken:
  br label %idle
}

CORES
; Start workers until there are so many, as far as the system lets us; signals are not for them.
define internal void @start(i64 %wanted) nounwind {
entry:
  %all = alloca [128 x i8], align 64
  %old = alloca [128 x i8], align 64
  %have = load i64, ptr @started, align 8
  %any = icmp slt i64 %have, %wanted
  br i1 %any, label %mask, label %done
mask:
  %filled = call i32 @sigfillset(ptr %all)
  %masked = call i32 @pthread_sigmask(i32 2, ptr %all, ptr %old)
  br label %one
one:
  %number = phi i64 [ %have, %mask ], [ %following, %made ]
  %more = icmp slt i64 %number, %wanted
  br i1 %more, label %make, label %restore
make:
  %me = getelementptr %worker, ptr @workers, i64 %number
  %ready = call i32 @sem_init(ptr %me, i32 0, i32 0)
  %asleep = getelementptr %worker, ptr %me, i64 0, i32 2
  store atomic i32 0, ptr %asleep seq_cst, align 4
  %avoids = getelementptr %worker, ptr %me, i64 0, i32 3
  store i32 -1, ptr %avoids, align 4
  %handle = getelementptr %worker, ptr %me, i64 0, i32 1
  %error = call i32 @pthread_create(ptr %handle, ptr null, ptr @serve, ptr %me)
  %failed = icmp ne i32 %error, 0
  br i1 %failed, label %restore, label %made
made:
  %thread = load i64, ptr %handle, align 8
  %detached = call i32 @pthread_detach(i64 %thread)
  %following = add i64 %number, 1
  br label %one
restore:
  store i64 %number, ptr @started, align 8
  %back = call i32 @pthread_sigmask(i32 2, ptr %old, ptr null)
  br label %done
done:
  ret void
}

; Wake sleeping workers.
define internal void @wake(i64 %wanted, i64 %cores) nounwind {
entry:
  %few = icmp ule i64 %cores, 8
  br label %one
one:
  %number = phi i64 [ 0, %entry ], [ %following, %next ]
  %more = icmp slt i64 %number, %wanted
  br i1 %more, label %ask, label %done
ask:
  %me = getelementptr %worker, ptr @workers, i64 %number
  %asleep = getelementptr %worker, ptr %me, i64 0, i32 2
  %was = atomicrmw xchg ptr %asleep, i32 0 seq_cst
  %sleeps = icmp eq i32 %was, 1
  br i1 %sleeps, label %up, label %next
up:
  br i1 %few, label %aside, label %post
aside:
  %here = call i32 @sched_getcpu()
  call void @move(ptr %me, i32 %here)
  br label %post
post:
  %posted = call i32 @sem_post(ptr %me)
  br label %next
next:
  %following = add i64 %number, 1
  br label %one
done:
  ret void
}

define i32 @run(ptr %work, ptr %closure, i64 %chunks) nounwind {
entry:
  %cores = load i64, ptr @threads, align 8
  %limit = load i64, ptr @limit, align 8
  %threads = call i64 @llvm.umin.i64(i64 %cores, i64 %limit)
  %single = icmp slt i64 %threads, 2
  br i1 %single, label %serial, label %lock
lock:
  %pair = cmpxchg ptr @busy, i32 0, i32 1 acquire monotonic
  %is_mine = extractvalue { i32, i1 } %pair, 1
  br i1 %is_mine, label %open, label %serial
serial:
  %status1 = call i32 @alone(ptr %work, ptr %closure, i64 %chunks)
  ret i32 %status1
open:
  %others = sub i64 %threads, 1
  %spare = sub i64 %chunks, 1
  %wanted = call i64 @llvm.umin.i64(i64 %others, i64 %spare)
  store ptr %work, ptr @work, align 8
  store ptr %closure, ptr @closure, align 8
  store i64 %chunks, ptr @chunks, align 8
  store atomic i64 0, ptr @next monotonic, align 8
  store atomic i32 0, ptr @status monotonic, align 4
  %old = load atomic i64, ptr @gate monotonic, align 8
  %round = lshr i64 %old, 16
  %following = add i64 %round, 1
  %shifted = shl i64 %following, 16
  %new = or i64 %shifted, 32768
  store atomic i64 %new, ptr @gate seq_cst, align 8
  call void @start(i64 %wanted)
  %have = load i64, ptr @started, align 8
  %there = call i64 @llvm.umin.i64(i64 %wanted, i64 %have)
  call void @wake(i64 %there, i64 %threads)
  call void @take()
  %closed = atomicrmw and ptr @gate, i64 -32769 acq_rel
  br label %wait
wait:
  %turn = phi i64 [ 0, %open ], [ %later, %again ]
  %gate = load atomic i64, ptr @gate acquire, align 8
  %inside = and i64 %gate, 32767
  %empty = icmp eq i64 %inside, 0
  br i1 %empty, label %done, label %pause
pause:
  PAUSE
  %later = add i64 %turn, 1
  %patient = icmp slt i64 %later, 4000
  br i1 %patient, label %again, label %yield
yield:
  %yielded = call i32 @sched_yield()
  br label %again
again:
  br label %wait
done:
  %status2 = load atomic i32, ptr @status monotonic, align 4
  store atomic i32 0, ptr @busy release, align 4
  ret i32 %status2
}

; In a forked process there are no workers, and nobody has a round.
define void @forget() nounwind {
  store atomic i32 0, ptr @busy seq_cst, align 4
  store atomic i64 0, ptr @gate seq_cst, align 8
  store i64 0, ptr @started, align 8
  call void @forget_kept()
  ret void
}
"""
_PAUSES = {
    "x86_64": ("declare void @llvm.x86.sse2.pause()", "call void @llvm.x86.sse2.pause()"),
    "aarch64": ("declare void @llvm.aarch64.hint(i32)", "call void @llvm.aarch64.hint(i32 1)"),
}


def pool_text(architecture: str) -> str:
    """Return the module for a processor: only how to pause differs."""
    declared, pause = _PAUSES.get(architecture, ("", ""))
    text = (
        (_TEXT + MEMORY_TEXT)
        .replace("CORES\n", CORES_TEXT)
        .replace("DECLARE_PAUSE", declared)
        .replace("PAUSE", pause)
    )
    return text.replace("MOST", str(MOST_THREADS - 1))
