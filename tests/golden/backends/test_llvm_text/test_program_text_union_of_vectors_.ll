declare {i64, i1} @llvm.umul.with.overflow.i64(i64, i64)
declare ptr @sparsejit_take(i64)
declare ptr @sparsejit_grow(ptr, i64, i64)
declare ptr @realloc(ptr, i64)
declare void @sparsejit_give(ptr)

define internal i32 @loops(ptr noalias %p0, i64 %p1, ptr noalias %p2, i64 %p3, ptr noalias %p4, i64 %p5, ptr noalias %p6, i64 %p7, ptr noalias %p8) noinline nounwind {
slots:
  %v1 = alloca i32
  %v4 = alloca ptr
  store ptr null, ptr %v4, align 8
  %v5 = alloca ptr
  %v6 = alloca i64
  %v9 = alloca ptr
  store ptr null, ptr %v9, align 8
  %v10 = alloca ptr
  %v11 = alloca i64
  %v12 = alloca i64
  %v13 = alloca i64
  %v14 = alloca i64
  %v38 = alloca float
  br label %body
body:
  %v2 = call ptr @sparsejit_take(i64 0)
  %v3 = icmp eq ptr %v2, null
  br i1 %v3, label %leave, label %go_on
leave:
  store i32 1, ptr %v1, align 4
  br label %fail
go_on:
  store ptr %v2, ptr %v4, align 8
  store ptr %v2, ptr %v5, align 8
  store i64 0, ptr %v6, align 8
  %v7 = call ptr @sparsejit_take(i64 4)
  %v8 = icmp eq ptr %v7, null
  br i1 %v8, label %leave.1, label %go_on.1
leave.1:
  store i32 1, ptr %v1, align 4
  br label %fail
go_on.1:
  store ptr %v7, ptr %v9, align 8
  store ptr %v7, ptr %v10, align 8
  store i64 1, ptr %v11, align 8
  store i64 0, ptr %v12, align 8
  store i64 0, ptr %v13, align 8
  store i64 0, ptr %v14, align 8
  br label %while
while:
  %v15 = load i64, ptr %v12, align 8
  %v16 = icmp slt i64 %v15, %p1
  %v17 = load i64, ptr %v13, align 8
  %v18 = icmp slt i64 %v17, %p5
  %v19 = or i1 %v16, %v18
  br i1 %v19, label %do, label %done
do:
  %v20 = load i64, ptr %v12, align 8
  %v21 = icmp slt i64 %v20, %p1
  br i1 %v21, label %then, label %orelse
then:
  %v22 = load i64, ptr %v12, align 8
  %v23 = getelementptr inbounds i32, ptr %p0, i64 %v22
  %v24 = load i32, ptr %v23, align 4
  %v25 = sext i32 %v24 to i64
  br label %chosen
orelse:
  br label %chosen
chosen:
  %v26 = phi i64 [ %v25, %then ], [ 4611686018427387904, %orelse ]
  %v27 = load i64, ptr %v13, align 8
  %v28 = icmp slt i64 %v27, %p5
  br i1 %v28, label %then.1, label %orelse.1
then.1:
  %v29 = load i64, ptr %v13, align 8
  %v30 = getelementptr inbounds i32, ptr %p4, i64 %v29
  %v31 = load i32, ptr %v30, align 4
  %v32 = sext i32 %v31 to i64
  br label %chosen.1
orelse.1:
  br label %chosen.1
chosen.1:
  %v33 = phi i64 [ %v32, %then.1 ], [ 4611686018427387904, %orelse.1 ]
  %v34 = icmp slt i64 %v26, %v33
  %v35 = select i1 %v34, i64 %v26, i64 %v33
  %v36 = icmp sle i64 %v26, %v33
  %v37 = icmp sle i64 %v33, %v26
  store float 0x0000000000000000, ptr %v38, align 8
  br i1 %v36, label %if, label %endif
if:
  %v39 = load i64, ptr %v12, align 8
  %v40 = getelementptr inbounds float, ptr %p2, i64 %v39
  %v41 = load float, ptr %v40, align 4
  %v42 = load float, ptr %v38, align 8
  %v43 = fadd reassoc contract float %v42, %v41
  store float %v43, ptr %v38, align 8
  %v44 = load i64, ptr %v12, align 8
  %v45 = add i64 %v44, 1
  store i64 %v45, ptr %v12, align 8
  br label %endif
endif:
  br i1 %v37, label %if.1, label %endif.1
if.1:
  %v46 = load i64, ptr %v13, align 8
  %v47 = getelementptr inbounds float, ptr %p6, i64 %v46
  %v48 = load float, ptr %v47, align 4
  %v49 = load float, ptr %v38, align 8
  %v50 = fadd reassoc contract float %v49, %v48
  store float %v50, ptr %v38, align 8
  %v51 = load i64, ptr %v13, align 8
  %v52 = add i64 %v51, 1
  store i64 %v52, ptr %v13, align 8
  br label %endif.1
endif.1:
  %v53 = load i64, ptr %v14, align 8
  %v54 = load i64, ptr %v6, align 8
  %v55 = icmp sge i64 %v53, %v54
  br i1 %v55, label %grow, label %grown
grow:
  %v56 = load ptr, ptr %v5, align 8
  %v57 = load i64, ptr %v6, align 8
  %v58 = call {ptr, i64} @grow(ptr %v56, i64 %v57, i64 %v53, i64 4)
  %v59 = extractvalue {ptr, i64} %v58, 0
  %v60 = extractvalue {ptr, i64} %v58, 1
  %v61 = icmp eq ptr %v59, null
  br i1 %v61, label %leave.2, label %go_on.2
leave.2:
  store i32 1, ptr %v1, align 4
  br label %fail
go_on.2:
  store ptr %v59, ptr %v5, align 8
  store i64 %v60, ptr %v6, align 8
  store ptr %v59, ptr %v4, align 8
  br label %grown
grown:
  %v62 = trunc i64 %v35 to i32
  %v63 = load ptr, ptr %v5, align 8
  %v64 = getelementptr inbounds i32, ptr %v63, i64 %v53
  store i32 %v62, ptr %v64, align 4
  %v65 = load i64, ptr %v14, align 8
  %v66 = load i64, ptr %v11, align 8
  %v67 = icmp sge i64 %v65, %v66
  br i1 %v67, label %grow.1, label %grown.1
grow.1:
  %v68 = load ptr, ptr %v10, align 8
  %v69 = load i64, ptr %v11, align 8
  %v70 = call {ptr, i64} @grow(ptr %v68, i64 %v69, i64 %v65, i64 4)
  %v71 = extractvalue {ptr, i64} %v70, 0
  %v72 = extractvalue {ptr, i64} %v70, 1
  %v73 = icmp eq ptr %v71, null
  br i1 %v73, label %leave.3, label %go_on.3
leave.3:
  store i32 1, ptr %v1, align 4
  br label %fail
go_on.3:
  store ptr %v71, ptr %v10, align 8
  store i64 %v72, ptr %v11, align 8
  store ptr %v71, ptr %v9, align 8
  br label %grown.1
grown.1:
  %v74 = load float, ptr %v38, align 8
  %v75 = load ptr, ptr %v10, align 8
  %v76 = getelementptr inbounds float, ptr %v75, i64 %v65
  store float %v74, ptr %v76, align 4
  %v77 = load i64, ptr %v14, align 8
  %v78 = add i64 %v77, 1
  store i64 %v78, ptr %v14, align 8
  br label %while
done:
  %v79 = load i64, ptr %v14, align 8
  %v80 = icmp sgt i64 %v79, 0
  br i1 %v80, label %move, label %moved
move:
  %v81 = mul nsw i64 %v79, 4
  %v82 = load ptr, ptr %v5, align 8
  %v83 = call ptr @realloc(ptr %v82, i64 %v81)
  %v84 = icmp eq ptr %v83, null
  br i1 %v84, label %leave.4, label %go_on.4
leave.4:
  store i32 1, ptr %v1, align 4
  br label %fail
go_on.4:
  store ptr %v83, ptr %v5, align 8
  store i64 %v79, ptr %v6, align 8
  store ptr %v83, ptr %v4, align 8
  br label %moved
moved:
  store i64 %v79, ptr %v6, align 8
  %v85 = load i64, ptr %v14, align 8
  %v86 = icmp sgt i64 %v85, 0
  br i1 %v86, label %move.1, label %moved.1
move.1:
  %v87 = mul nsw i64 %v85, 4
  %v88 = load ptr, ptr %v10, align 8
  %v89 = call ptr @realloc(ptr %v88, i64 %v87)
  %v90 = icmp eq ptr %v89, null
  br i1 %v90, label %leave.5, label %go_on.5
leave.5:
  store i32 1, ptr %v1, align 4
  br label %fail
go_on.5:
  store ptr %v89, ptr %v10, align 8
  store i64 %v85, ptr %v11, align 8
  store ptr %v89, ptr %v9, align 8
  br label %moved.1
moved.1:
  store i64 %v85, ptr %v11, align 8
  %v91 = load ptr, ptr %v5, align 8
  %v92 = load ptr, ptr %v10, align 8
  %v93 = load ptr, ptr %v5, align 8
  %v94 = load i64, ptr %v6, align 8
  %v95 = load ptr, ptr %v10, align 8
  %v96 = load i64, ptr %v11, align 8
  store ptr %v91, ptr %p8, align 8
  %v97 = getelementptr inbounds i8, ptr %p8, i64 8
  store ptr %v92, ptr %v97, align 8
  %v98 = getelementptr inbounds i8, ptr %p8, i64 16
  store ptr %v93, ptr %v98, align 8
  %v99 = getelementptr inbounds i8, ptr %p8, i64 24
  store i64 %v94, ptr %v99, align 8
  %v100 = getelementptr inbounds i8, ptr %p8, i64 32
  store i64 4, ptr %v100, align 8
  %v101 = getelementptr inbounds i8, ptr %p8, i64 40
  store ptr %v95, ptr %v101, align 8
  %v102 = getelementptr inbounds i8, ptr %p8, i64 48
  store i64 %v96, ptr %v102, align 8
  %v103 = getelementptr inbounds i8, ptr %p8, i64 56
  store i64 4, ptr %v103, align 8
  ret i32 0
fail:
  %v104 = load ptr, ptr %v4, align 8
  call void @sparsejit_give(ptr %v104)
  %v105 = load ptr, ptr %v9, align 8
  call void @sparsejit_give(ptr %v105)
  %v106 = load i32, ptr %v1, align 4
  ret i32 %v106
}

define internal {ptr, i64} @grow(ptr %p0, i64 %p1, i64 %p2, i64 %p3) cold noinline nounwind {
slots:
  br label %body
body:
  %v1 = add nsw i64 %p1, %p1
  %v2 = add nsw i64 %p2, 16
  %v3 = icmp sgt i64 %v1, %v2
  %v4 = select i1 %v3, i64 %v1, i64 %v2
  %v5 = mul nsw i64 %v4, %p3
  %v6 = mul nsw i64 %p1, %p3
  %v7 = call ptr @sparsejit_grow(ptr %p0, i64 %v6, i64 %v5)
  %v8 = insertvalue {ptr, i64} poison, ptr %v7, 0
  %v9 = insertvalue {ptr, i64} %v8, i64 %v4, 1
  ret {ptr, i64} %v9
}

define i32 @entry(ptr %p0) noinline optnone nounwind {
slots:
  br label %body
body:
  %v1 = load ptr, ptr %p0, align 8
  %v2 = getelementptr inbounds i8, ptr %v1, i64 16
  %v3 = load ptr, ptr %v2, align 8
  %v4 = getelementptr inbounds i8, ptr %v1, i64 32
  %v5 = load ptr, ptr %v4, align 8
  %v6 = load i64, ptr %v5, align 8
  %v7 = getelementptr inbounds i8, ptr %p0, i64 8
  %v8 = load ptr, ptr %v7, align 8
  %v9 = getelementptr inbounds i8, ptr %v8, i64 16
  %v10 = load ptr, ptr %v9, align 8
  %v11 = getelementptr inbounds i8, ptr %v8, i64 32
  %v12 = load ptr, ptr %v11, align 8
  %v13 = load i64, ptr %v12, align 8
  %v14 = getelementptr inbounds i8, ptr %p0, i64 16
  %v15 = load ptr, ptr %v14, align 8
  %v16 = getelementptr inbounds i8, ptr %v15, i64 16
  %v17 = load ptr, ptr %v16, align 8
  %v18 = getelementptr inbounds i8, ptr %v15, i64 32
  %v19 = load ptr, ptr %v18, align 8
  %v20 = load i64, ptr %v19, align 8
  %v21 = getelementptr inbounds i8, ptr %p0, i64 24
  %v22 = load ptr, ptr %v21, align 8
  %v23 = getelementptr inbounds i8, ptr %v22, i64 16
  %v24 = load ptr, ptr %v23, align 8
  %v25 = getelementptr inbounds i8, ptr %v22, i64 32
  %v26 = load ptr, ptr %v25, align 8
  %v27 = load i64, ptr %v26, align 8
  %v28 = getelementptr inbounds i8, ptr %p0, i64 32
  %v29 = call i32 @loops(ptr %v3, i64 %v6, ptr %v10, i64 %v13, ptr %v17, i64 %v20, ptr %v24, i64 %v27, ptr %v28)
  ret i32 %v29
}
