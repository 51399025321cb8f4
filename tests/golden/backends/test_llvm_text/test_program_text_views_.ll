declare {i64, i1} @llvm.umul.with.overflow.i64(i64, i64)
declare ptr @malloc(i64)
declare i32 @madvise(ptr, i64, i32)
declare void @free(ptr)

define internal i32 @loops(ptr noalias %p0, i64 %p1, i64 %p2, ptr noalias %p3, i64 %p4, ptr noalias %p5, ptr noalias %p6) noinline nounwind {
slots:
  %v1 = alloca i32
  %v45 = alloca ptr
  store ptr null, ptr %v45, align 8
  %v89 = alloca ptr
  store ptr null, ptr %v89, align 8
  br label %body
body:
  %v2 = add i64 %p1, 1
  %v3 = sdiv i64 %v2, 2
  %v4 = srem i64 %v2, 2
  %v5 = xor i64 %v4, 2
  %v6 = icmp slt i64 %v5, 0
  %v7 = icmp ne i64 %v4, 0
  %v8 = and i1 %v7, %v6
  %v9 = select i1 %v8, i64 1, i64 0
  %v10 = sub i64 %v3, %v9
  %v11 = sub i64 0, %v2
  %v12 = mul nsw i64 %p2, 8
  %v13 = mul nsw i64 %v12, 2
  %v14 = getelementptr inbounds i8, ptr %p0, i64 8
  %v15 = add i64 %p1, -1
  %v16 = mul nsw i64 %p2, 8
  %v17 = mul nsw i64 %v15, %v16
  %v18 = getelementptr inbounds i8, ptr %p0, i64 %v17
  %v19 = mul nsw i64 %v16, -1
  %v20 = getelementptr inbounds i8, ptr %v18, i64 32
  %v21 = mul nsw i64 %p2, 8
  %v22 = mul nsw i64 2, %v21
  %v23 = getelementptr inbounds i8, ptr %p0, i64 %v22
  %v24 = add i64 %p4, -1
  %v25 = mul nsw i64 %v24, 8
  %v26 = getelementptr inbounds i8, ptr %p3, i64 %v25
  %v27 = getelementptr inbounds i8, ptr %p3, i64 -8
  %v28 = mul nsw i64 %p2, 8
  %v29 = getelementptr inbounds i8, ptr %p0, i64 %v28
  %v30 = getelementptr inbounds i8, ptr %v29, i64 16
  %v31 = call {i64, i1} @llvm.umul.with.overflow.i64(i64 8, i64 %p1)
  %v32 = extractvalue {i64, i1} %v31, 0
  %v33 = extractvalue {i64, i1} %v31, 1
  %v34 = or i1 false, %v33
  %v35 = call {i64, i1} @llvm.umul.with.overflow.i64(i64 %v32, i64 2)
  %v36 = extractvalue {i64, i1} %v35, 0
  %v37 = extractvalue {i64, i1} %v35, 1
  %v38 = or i1 %v34, %v37
  %v39 = icmp slt i64 %v36, 0
  %v40 = or i1 %v38, %v39
  br i1 %v40, label %leave, label %go_on
leave:
  store i32 1, ptr %v1, align 4
  br label %fail
go_on:
  %v41 = call ptr @allocate(i64 %v36)
  %v42 = icmp eq ptr %v41, null
  %v43 = icmp ne i64 %v36, 0
  %v44 = and i1 %v42, %v43
  br i1 %v44, label %leave.1, label %go_on.1
leave.1:
  store i32 1, ptr %v1, align 4
  br label %fail
go_on.1:
  store ptr %v41, ptr %v45, align 8
  %v46 = icmp slt i64 0, %p1
  br i1 %v46, label %for, label %end
for:
  %v47 = phi i64 [ 0, %go_on.1 ], [ %v60, %end.1 ]
  %v48 = icmp slt i64 0, 2
  br i1 %v48, label %for.1, label %end.1
for.1:
  %v49 = phi i64 [ 0, %for ], [ %v58, %for.1 ]
  %v50 = mul nsw i64 %v47, %v19
  %v51 = getelementptr inbounds i8, ptr %v20, i64 %v50
  %v52 = mul nsw i64 %v49, -24
  %v53 = getelementptr inbounds i8, ptr %v51, i64 %v52
  %v54 = load double, ptr %v53, align 1
  %v55 = mul nsw i64 %v47, 2
  %v56 = add nsw i64 %v55, %v49
  %v57 = getelementptr inbounds double, ptr %v41, i64 %v56
  store double %v54, ptr %v57, align 8
  %v58 = add nsw i64 %v49, 1
  %v59 = icmp slt i64 %v58, 2
  br i1 %v59, label %for.1, label %end.1
end.1:
  %v60 = add nsw i64 %v47, 1
  %v61 = icmp slt i64 %v60, %p1
  br i1 %v61, label %for, label %end
end:
  %v62 = icmp slt i64 0, 1
  br i1 %v62, label %for.2, label %end.2
for.2:
  %v63 = phi i64 [ 0, %end ], [ %v65, %for.2 ]
  %v64 = getelementptr inbounds double, ptr %p5, i64 %v63
  store double 0x4000000000000000, ptr %v64, align 8
  %v65 = add nsw i64 %v63, 1
  %v66 = icmp slt i64 %v65, 1
  br i1 %v66, label %for.2, label %end.2
end.2:
  %v67 = load double, ptr %v30, align 1
  %v68 = load double, ptr %p5, align 8
  %v69 = fmul reassoc contract double %v68, %v67
  store double %v69, ptr %p5, align 8
  %v70 = getelementptr inbounds i8, ptr %v14, i64 %v13
  %v71 = getelementptr inbounds double, ptr %v70, i64 2
  store double 0xC01C000000000000, ptr %v71, align 8
  %v72 = load double, ptr %v30, align 1
  %v73 = fcmp oge double %v72, 0x4049000000000000
  %v74 = fcmp uno double %v72, %v72
  %v75 = or i1 %v73, %v74
  %v76 = select i1 %v75, double %v72, double 0x4049000000000000
  store double %v76, ptr %v30, align 1
  %v77 = icmp slt i64 0, %p2
  br i1 %v77, label %for.3, label %end.3
for.3:
  %v78 = phi i64 [ 0, %end.2 ], [ %v85, %for.3 ]
  %v79 = mul nsw i64 %v78, -8
  %v80 = getelementptr inbounds i8, ptr %v26, i64 %v79
  %v81 = load double, ptr %v80, align 1
  %v82 = getelementptr inbounds double, ptr %v23, i64 %v78
  %v83 = load double, ptr %v82, align 8
  %v84 = fadd reassoc contract double %v83, %v81
  store double %v84, ptr %v82, align 8
  %v85 = add nsw i64 %v78, 1
  %v86 = icmp slt i64 %v85, %p2
  br i1 %v86, label %for.3, label %end.3
end.3:
  %v87 = call ptr @allocate(i64 24)
  %v88 = icmp eq ptr %v87, null
  br i1 %v88, label %leave.2, label %go_on.2
leave.2:
  store i32 1, ptr %v1, align 4
  br label %fail
go_on.2:
  store ptr %v87, ptr %v89, align 8
  call void @free(ptr %v87)
  store ptr null, ptr %v89, align 8
  %v90 = load double, ptr %p5, align 8
  store double %v90, ptr %v30, align 1
  %v91 = sitofp i64 0 to double
  %v92 = load double, ptr %p3, align 8
  %v93 = fadd reassoc contract double %v92, %v91
  store double %v93, ptr %p3, align 8
  store ptr %v41, ptr %p6, align 8
  %v94 = getelementptr inbounds i8, ptr %p6, i64 8
  store ptr %v41, ptr %v94, align 8
  %v95 = getelementptr inbounds i8, ptr %p6, i64 16
  store i64 %p1, ptr %v95, align 8
  %v96 = getelementptr inbounds i8, ptr %p6, i64 24
  store i64 2, ptr %v96, align 8
  %v97 = getelementptr inbounds i8, ptr %p6, i64 32
  store i64 16, ptr %v97, align 8
  %v98 = getelementptr inbounds i8, ptr %p6, i64 40
  store i64 8, ptr %v98, align 8
  ret i32 0
fail:
  %v99 = load ptr, ptr %v45, align 8
  call void @free(ptr %v99)
  %v100 = load ptr, ptr %v89, align 8
  call void @free(ptr %v100)
  %v101 = load i32, ptr %v1, align 4
  ret i32 %v101
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
