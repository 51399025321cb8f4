declare {i64, i1} @llvm.umul.with.overflow.i64(i64, i64)
declare ptr @aligned_alloc(i64, i64)
declare i32 @madvise(ptr, i64, i32)
declare ptr @malloc(i64)
declare void @free(ptr)

define internal i32 @loops(ptr noalias %p0, i64 %p1, i64 %p2, ptr noalias %p3, i64 %p4, ptr noalias %p5, ptr noalias %p6) noinline nounwind {
slots:
  %v1 = alloca i32
  %v37 = alloca ptr
  store ptr null, ptr %v37, align 8
  %v81 = alloca ptr
  store ptr null, ptr %v81, align 8
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
  %v26 = or i1 false, %v25
  %v27 = call {i64, i1} @llvm.umul.with.overflow.i64(i64 %v24, i64 2)
  %v28 = extractvalue {i64, i1} %v27, 0
  %v29 = extractvalue {i64, i1} %v27, 1
  %v30 = or i1 %v26, %v29
  %v31 = icmp slt i64 %v28, 0
  %v32 = or i1 %v30, %v31
  br i1 %v32, label %leave, label %go_on
leave:
  store i32 1, ptr %v1, align 4
  br label %fail
go_on:
  %v33 = call ptr @allocate_lines(i64 %v28)
  %v34 = icmp eq ptr %v33, null
  %v35 = icmp ne i64 %v28, 0
  %v36 = and i1 %v34, %v35
  br i1 %v36, label %leave.1, label %go_on.1
leave.1:
  store i32 1, ptr %v1, align 4
  br label %fail
go_on.1:
  store ptr %v33, ptr %v37, align 8
  %v38 = icmp slt i64 0, %p1
  br i1 %v38, label %for, label %end
for:
  %v39 = phi i64 [ 0, %go_on.1 ], [ %v52, %end.1 ]
  %v40 = icmp slt i64 0, 2
  br i1 %v40, label %for.1, label %end.1
for.1:
  %v41 = phi i64 [ 0, %for ], [ %v50, %for.1 ]
  %v42 = mul nsw i64 %v39, %v11
  %v43 = getelementptr inbounds i8, ptr %v12, i64 %v42
  %v44 = mul nsw i64 %v41, -24
  %v45 = getelementptr inbounds i8, ptr %v43, i64 %v44
  %v46 = load double, ptr %v45, align 1
  %v47 = mul nsw i64 %v39, 2
  %v48 = add nsw i64 %v47, %v41
  %v49 = getelementptr inbounds double, ptr %v33, i64 %v48
  store double %v46, ptr %v49, align 8
  %v50 = add nsw i64 %v41, 1
  %v51 = icmp slt i64 %v50, 2
  br i1 %v51, label %for.1, label %end.1
end.1:
  %v52 = add nsw i64 %v39, 1
  %v53 = icmp slt i64 %v52, %p1
  br i1 %v53, label %for, label %end
end:
  %v54 = icmp slt i64 0, 1
  br i1 %v54, label %for.2, label %end.2
for.2:
  %v55 = phi i64 [ 0, %end ], [ %v57, %for.2 ]
  %v56 = getelementptr inbounds double, ptr %p5, i64 %v55
  store double 0x4000000000000000, ptr %v56, align 8
  %v57 = add nsw i64 %v55, 1
  %v58 = icmp slt i64 %v57, 1
  br i1 %v58, label %for.2, label %end.2
end.2:
  %v59 = load double, ptr %v22, align 1
  %v60 = load double, ptr %p5, align 8
  %v61 = fmul reassoc contract double %v60, %v59
  store double %v61, ptr %p5, align 8
  %v62 = getelementptr inbounds i8, ptr %v6, i64 %v5
  %v63 = getelementptr inbounds double, ptr %v62, i64 2
  store double 0xC01C000000000000, ptr %v63, align 8
  %v64 = load double, ptr %v22, align 1
  %v65 = fcmp oge double %v64, 0x4049000000000000
  %v66 = fcmp uno double %v64, %v64
  %v67 = or i1 %v65, %v66
  %v68 = select i1 %v67, double %v64, double 0x4049000000000000
  store double %v68, ptr %v22, align 1
  %v69 = icmp slt i64 0, %p2
  br i1 %v69, label %for.3, label %end.3
for.3:
  %v70 = phi i64 [ 0, %end.2 ], [ %v77, %for.3 ]
  %v71 = mul nsw i64 %v70, -8
  %v72 = getelementptr inbounds i8, ptr %v18, i64 %v71
  %v73 = load double, ptr %v72, align 1
  %v74 = getelementptr inbounds double, ptr %v15, i64 %v70
  %v75 = load double, ptr %v74, align 8
  %v76 = fadd reassoc contract double %v75, %v73
  store double %v76, ptr %v74, align 8
  %v77 = add nsw i64 %v70, 1
  %v78 = icmp slt i64 %v77, %p2
  br i1 %v78, label %for.3, label %end.3
end.3:
  %v79 = call ptr @allocate(i64 24)
  %v80 = icmp eq ptr %v79, null
  br i1 %v80, label %leave.2, label %go_on.2
leave.2:
  store i32 1, ptr %v1, align 4
  br label %fail
go_on.2:
  store ptr %v79, ptr %v81, align 8
  call void @free(ptr %v79)
  store ptr null, ptr %v81, align 8
  %v82 = load double, ptr %p5, align 8
  store double %v82, ptr %v22, align 1
  %v83 = sitofp i64 0 to double
  %v84 = load double, ptr %p3, align 8
  %v85 = fadd reassoc contract double %v84, %v83
  store double %v85, ptr %p3, align 8
  store ptr %v33, ptr %p6, align 8
  %v86 = getelementptr inbounds i8, ptr %p6, i64 8
  store ptr %v33, ptr %v86, align 8
  %v87 = getelementptr inbounds i8, ptr %p6, i64 16
  store i64 %p1, ptr %v87, align 8
  %v88 = getelementptr inbounds i8, ptr %p6, i64 24
  store i64 2, ptr %v88, align 8
  %v89 = getelementptr inbounds i8, ptr %p6, i64 32
  store i64 16, ptr %v89, align 8
  %v90 = getelementptr inbounds i8, ptr %p6, i64 40
  store i64 8, ptr %v90, align 8
  ret i32 0
fail:
  %v91 = load ptr, ptr %v37, align 8
  call void @free(ptr %v91)
  %v92 = load ptr, ptr %v81, align 8
  call void @free(ptr %v92)
  %v93 = load i32, ptr %v1, align 4
  ret i32 %v93
}

define internal ptr @allocate_lines(i64 %p0) alwaysinline nounwind {
slots:
  br label %body
body:
  %v1 = call ptr @aligned_alloc(i64 64, i64 %p0)
  %v2 = icmp sge i64 %p0, 4194304
  br i1 %v2, label %large, label %small
large:
  %v3 = ptrtoint ptr %v1 to i64
  %v4 = sub i64 0, %v3
  %v5 = urem i64 %v4, 65536
  %v6 = getelementptr inbounds i8, ptr %v1, i64 %v5
  %v7 = sub i64 %p0, %v5
  %v8 = call i32 @madvise(ptr %v6, i64 %v7, i32 14)
  br label %small
small:
  ret ptr %v1
}

define internal ptr @allocate(i64 %p0) alwaysinline nounwind {
slots:
  br label %body
body:
  %v1 = call ptr @malloc(i64 %p0)
  %v2 = icmp sge i64 %p0, 4194304
  br i1 %v2, label %large, label %small
large:
  %v3 = ptrtoint ptr %v1 to i64
  %v4 = sub i64 0, %v3
  %v5 = urem i64 %v4, 65536
  %v6 = getelementptr inbounds i8, ptr %v1, i64 %v5
  %v7 = sub i64 %p0, %v5
  %v8 = call i32 @madvise(ptr %v6, i64 %v7, i32 14)
  br label %small
small:
  ret ptr %v1
}

define i32 @entry(ptr %p0) nounwind {
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
