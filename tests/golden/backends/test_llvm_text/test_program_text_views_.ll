declare {i64, i1} @llvm.umul.with.overflow.i64(i64, i64)
declare ptr @sparsejit_take_lines(i64)
declare ptr @sparsejit_take(i64)
declare void @sparsejit_give(ptr)

define internal i32 @loops(ptr noalias %p0, i64 %p1, i64 %p2, ptr noalias %p3, i64 %p4, ptr noalias %p5, ptr noalias %p6) noinline nounwind {
slots:
  %v1 = alloca i32
  %v36 = alloca ptr
  store ptr null, ptr %v36, align 8
  %v78 = alloca ptr
  store ptr null, ptr %v78, align 8
  br label %body
body:
  %v2 = add i64 %p1, 1
  %v3 = ashr i64 %v2, 1
  %v4 = mul nsw i64 %p2, 8
  %v5 = mul nsw i64 %v4, 2
  %v6 = getelementptr inbounds i8, ptr %p0, i64 8
  %v7 = add i64 %p1, -1
  %v8 = mul nsw i64 %p2, 8
  %v9 = mul nsw i64 %v7, %v8
  %v10 = getelementptr inbounds i8, ptr %p0, i64 %v9
  %v11 = mul nsw i64 %v8, -1
  %v12 = getelementptr inbounds i8, ptr %v10, i64 32
  %v13 = mul nsw i64 %p2, 8
  %v14 = mul nsw i64 2, %v13
  %v15 = getelementptr inbounds i8, ptr %p0, i64 %v14
  %v16 = add i64 %p4, -1
  %v17 = mul nsw i64 %v16, 8
  %v18 = getelementptr inbounds i8, ptr %p3, i64 %v17
  %v19 = getelementptr inbounds i8, ptr %p3, i64 -8
  %v20 = mul nsw i64 %p2, 8
  %v21 = getelementptr inbounds i8, ptr %p0, i64 %v20
  %v22 = getelementptr inbounds i8, ptr %v21, i64 16
  %v23 = call {i64, i1} @llvm.umul.with.overflow.i64(i64 8, i64 %p1)
  %v24 = extractvalue {i64, i1} %v23, 0
  %v25 = extractvalue {i64, i1} %v23, 1
  %v26 = call {i64, i1} @llvm.umul.with.overflow.i64(i64 %v24, i64 2)
  %v27 = extractvalue {i64, i1} %v26, 0
  %v28 = extractvalue {i64, i1} %v26, 1
  %v29 = or i1 %v25, %v28
  %v30 = icmp slt i64 %v27, 0
  %v31 = or i1 %v29, %v30
  br i1 %v31, label %leave, label %go_on
leave:
  store i32 1, ptr %v1, align 4
  br label %fail
go_on:
  %v32 = call ptr @sparsejit_take_lines(i64 %v27)
  %v33 = icmp eq ptr %v32, null
  %v34 = icmp ne i64 %v27, 0
  %v35 = and i1 %v33, %v34
  br i1 %v35, label %leave.1, label %go_on.1
leave.1:
  store i32 1, ptr %v1, align 4
  br label %fail
go_on.1:
  store ptr %v32, ptr %v36, align 8
  %v37 = icmp slt i64 0, %p1
  br i1 %v37, label %for, label %end
for:
  %v38 = phi i64 [ 0, %go_on.1 ], [ %v50, %end.1 ]
  br i1 true, label %for.1, label %end.1
for.1:
  %v39 = phi i64 [ 0, %for ], [ %v48, %for.1 ]
  %v40 = mul nsw i64 %v38, %v11
  %v41 = getelementptr inbounds i8, ptr %v12, i64 %v40
  %v42 = mul nsw i64 %v39, -24
  %v43 = getelementptr inbounds i8, ptr %v41, i64 %v42
  %v44 = load double, ptr %v43, align 1
  %v45 = mul nsw i64 %v38, 2
  %v46 = add nsw i64 %v45, %v39
  %v47 = getelementptr inbounds double, ptr %v32, i64 %v46
  store double %v44, ptr %v47, align 8
  %v48 = add nsw i64 %v39, 1
  %v49 = icmp slt i64 %v48, 2
  br i1 %v49, label %for.1, label %end.1
end.1:
  %v50 = add nsw i64 %v38, 1
  %v51 = icmp slt i64 %v50, %p1
  br i1 %v51, label %for, label %end
end:
  br i1 true, label %for.2, label %end.2
for.2:
  %v52 = phi i64 [ 0, %end ], [ %v54, %for.2 ]
  %v53 = getelementptr inbounds double, ptr %p5, i64 %v52
  store double 0x4000000000000000, ptr %v53, align 8
  %v54 = add nsw i64 %v52, 1
  %v55 = icmp slt i64 %v54, 1
  br i1 %v55, label %for.2, label %end.2
end.2:
  %v56 = load double, ptr %v22, align 1
  %v57 = load double, ptr %p5, align 8
  %v58 = fmul reassoc contract double %v57, %v56
  store double %v58, ptr %p5, align 8
  %v59 = getelementptr inbounds i8, ptr %v6, i64 %v5
  %v60 = getelementptr inbounds double, ptr %v59, i64 2
  store double 0xC01C000000000000, ptr %v60, align 8
  %v61 = load double, ptr %v22, align 1
  %v62 = fcmp oge double %v61, 0x4049000000000000
  %v63 = fcmp uno double %v61, %v61
  %v64 = or i1 %v62, %v63
  %v65 = select i1 %v64, double %v61, double 0x4049000000000000
  store double %v65, ptr %v22, align 1
  %v66 = icmp slt i64 0, %p2
  br i1 %v66, label %for.3, label %end.3
for.3:
  %v67 = phi i64 [ 0, %end.2 ], [ %v74, %for.3 ]
  %v68 = mul nsw i64 %v67, -8
  %v69 = getelementptr inbounds i8, ptr %v18, i64 %v68
  %v70 = load double, ptr %v69, align 1
  %v71 = getelementptr inbounds double, ptr %v15, i64 %v67
  %v72 = load double, ptr %v71, align 8
  %v73 = fadd reassoc contract double %v72, %v70
  store double %v73, ptr %v71, align 8
  %v74 = add nsw i64 %v67, 1
  %v75 = icmp slt i64 %v74, %p2
  br i1 %v75, label %for.3, label %end.3
end.3:
  %v76 = call ptr @sparsejit_take(i64 24)
  %v77 = icmp eq ptr %v76, null
  br i1 %v77, label %leave.2, label %go_on.2
leave.2:
  store i32 1, ptr %v1, align 4
  br label %fail
go_on.2:
  store ptr %v76, ptr %v78, align 8
  call void @sparsejit_give(ptr %v76)
  store ptr null, ptr %v78, align 8
  %v79 = load double, ptr %p5, align 8
  store double %v79, ptr %v22, align 1
  %v80 = sitofp i64 0 to double
  %v81 = load double, ptr %p3, align 8
  %v82 = fadd reassoc contract double %v81, %v80
  store double %v82, ptr %p3, align 8
  store ptr %v32, ptr %p6, align 8
  %v83 = getelementptr inbounds i8, ptr %p6, i64 8
  store ptr %v32, ptr %v83, align 8
  %v84 = getelementptr inbounds i8, ptr %p6, i64 16
  store i64 %p1, ptr %v84, align 8
  %v85 = getelementptr inbounds i8, ptr %p6, i64 24
  store i64 2, ptr %v85, align 8
  %v86 = getelementptr inbounds i8, ptr %p6, i64 32
  store i64 16, ptr %v86, align 8
  %v87 = getelementptr inbounds i8, ptr %p6, i64 40
  store i64 8, ptr %v87, align 8
  ret i32 0
fail:
  %v88 = load ptr, ptr %v36, align 8
  call void @sparsejit_give(ptr %v88)
  %v89 = load ptr, ptr %v78, align 8
  call void @sparsejit_give(ptr %v89)
  %v90 = load i32, ptr %v1, align 4
  ret i32 %v90
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
  %v7 = getelementptr inbounds i8, ptr %v5, i64 8
  %v8 = load i64, ptr %v7, align 8
  %v9 = getelementptr inbounds i8, ptr %p0, i64 8
  %v10 = load ptr, ptr %v9, align 8
  %v11 = getelementptr inbounds i8, ptr %v10, i64 16
  %v12 = load ptr, ptr %v11, align 8
  %v13 = getelementptr inbounds i8, ptr %v10, i64 32
  %v14 = load ptr, ptr %v13, align 8
  %v15 = load i64, ptr %v14, align 8
  %v16 = getelementptr inbounds i8, ptr %p0, i64 16
  %v17 = load ptr, ptr %v16, align 8
  %v18 = getelementptr inbounds i8, ptr %v17, i64 16
  %v19 = load ptr, ptr %v18, align 8
  %v20 = getelementptr inbounds i8, ptr %p0, i64 24
  %v21 = call i32 @loops(ptr %v3, i64 %v6, i64 %v8, ptr %v12, i64 %v15, ptr %v19, ptr %v20)
  ret i32 %v21
}
