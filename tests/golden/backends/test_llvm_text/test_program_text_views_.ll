declare {i64, i1} @llvm.umul.with.overflow.i64(i64, i64)
declare ptr @malloc(i64)
declare i32 @madvise(ptr, i64, i32)
declare void @free(ptr)

define internal i32 @loops(ptr noalias %p0, i64 %p1, i64 %p2, ptr noalias %p3, i64 %p4, ptr noalias %p5, ptr noalias %p6) noinline nounwind {
slots:
  %v1 = alloca i32
  %v44 = alloca ptr
  store ptr null, ptr %v44, align 8
  %v86 = alloca ptr
  store ptr null, ptr %v86, align 8
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
  %v34 = call {i64, i1} @llvm.umul.with.overflow.i64(i64 %v32, i64 2)
  %v35 = extractvalue {i64, i1} %v34, 0
  %v36 = extractvalue {i64, i1} %v34, 1
  %v37 = or i1 %v33, %v36
  %v38 = icmp slt i64 %v35, 0
  %v39 = or i1 %v37, %v38
  br i1 %v39, label %leave, label %go_on
leave:
  store i32 1, ptr %v1, align 4
  br label %fail
go_on:
  %v40 = call ptr @allocate(i64 %v35)
  %v41 = icmp eq ptr %v40, null
  %v42 = icmp ne i64 %v35, 0
  %v43 = and i1 %v41, %v42
  br i1 %v43, label %leave.1, label %go_on.1
leave.1:
  store i32 1, ptr %v1, align 4
  br label %fail
go_on.1:
  store ptr %v40, ptr %v44, align 8
  %v45 = icmp slt i64 0, %p1
  br i1 %v45, label %for, label %end
for:
  %v46 = phi i64 [ 0, %go_on.1 ], [ %v58, %end.1 ]
  br i1 true, label %for.1, label %end.1
for.1:
  %v47 = phi i64 [ 0, %for ], [ %v56, %for.1 ]
  %v48 = mul nsw i64 %v46, %v19
  %v49 = getelementptr inbounds i8, ptr %v20, i64 %v48
  %v50 = mul nsw i64 %v47, -24
  %v51 = getelementptr inbounds i8, ptr %v49, i64 %v50
  %v52 = load double, ptr %v51, align 1
  %v53 = mul nsw i64 %v46, 2
  %v54 = add nsw i64 %v53, %v47
  %v55 = getelementptr inbounds double, ptr %v40, i64 %v54
  store double %v52, ptr %v55, align 8
  %v56 = add nsw i64 %v47, 1
  %v57 = icmp slt i64 %v56, 2
  br i1 %v57, label %for.1, label %end.1
end.1:
  %v58 = add nsw i64 %v46, 1
  %v59 = icmp slt i64 %v58, %p1
  br i1 %v59, label %for, label %end
end:
  br i1 true, label %for.2, label %end.2
for.2:
  %v60 = phi i64 [ 0, %end ], [ %v62, %for.2 ]
  %v61 = getelementptr inbounds double, ptr %p5, i64 %v60
  store double 0x4000000000000000, ptr %v61, align 8
  %v62 = add nsw i64 %v60, 1
  %v63 = icmp slt i64 %v62, 1
  br i1 %v63, label %for.2, label %end.2
end.2:
  %v64 = load double, ptr %v30, align 1
  %v65 = load double, ptr %p5, align 8
  %v66 = fmul reassoc contract double %v65, %v64
  store double %v66, ptr %p5, align 8
  %v67 = getelementptr inbounds i8, ptr %v14, i64 %v13
  %v68 = getelementptr inbounds double, ptr %v67, i64 2
  store double 0xC01C000000000000, ptr %v68, align 8
  %v69 = load double, ptr %v30, align 1
  %v70 = fcmp oge double %v69, 0x4049000000000000
  %v71 = fcmp uno double %v69, %v69
  %v72 = or i1 %v70, %v71
  %v73 = select i1 %v72, double %v69, double 0x4049000000000000
  store double %v73, ptr %v30, align 1
  %v74 = icmp slt i64 0, %p2
  br i1 %v74, label %for.3, label %end.3
for.3:
  %v75 = phi i64 [ 0, %end.2 ], [ %v82, %for.3 ]
  %v76 = mul nsw i64 %v75, -8
  %v77 = getelementptr inbounds i8, ptr %v26, i64 %v76
  %v78 = load double, ptr %v77, align 1
  %v79 = getelementptr inbounds double, ptr %v23, i64 %v75
  %v80 = load double, ptr %v79, align 8
  %v81 = fadd reassoc contract double %v80, %v78
  store double %v81, ptr %v79, align 8
  %v82 = add nsw i64 %v75, 1
  %v83 = icmp slt i64 %v82, %p2
  br i1 %v83, label %for.3, label %end.3
end.3:
  %v84 = call ptr @allocate(i64 24)
  %v85 = icmp eq ptr %v84, null
  br i1 %v85, label %leave.2, label %go_on.2
leave.2:
  store i32 1, ptr %v1, align 4
  br label %fail
go_on.2:
  store ptr %v84, ptr %v86, align 8
  call void @free(ptr %v84)
  store ptr null, ptr %v86, align 8
  %v87 = load double, ptr %p5, align 8
  store double %v87, ptr %v30, align 1
  %v88 = sitofp i64 0 to double
  %v89 = load double, ptr %p3, align 8
  %v90 = fadd reassoc contract double %v89, %v88
  store double %v90, ptr %p3, align 8
  store ptr %v40, ptr %p6, align 8
  %v91 = getelementptr inbounds i8, ptr %p6, i64 8
  store ptr %v40, ptr %v91, align 8
  %v92 = getelementptr inbounds i8, ptr %p6, i64 16
  store i64 %p1, ptr %v92, align 8
  %v93 = getelementptr inbounds i8, ptr %p6, i64 24
  store i64 2, ptr %v93, align 8
  %v94 = getelementptr inbounds i8, ptr %p6, i64 32
  store i64 16, ptr %v94, align 8
  %v95 = getelementptr inbounds i8, ptr %p6, i64 40
  store i64 8, ptr %v95, align 8
  ret i32 0
fail:
  %v96 = load ptr, ptr %v44, align 8
  call void @free(ptr %v96)
  %v97 = load ptr, ptr %v86, align 8
  call void @free(ptr %v97)
  %v98 = load i32, ptr %v1, align 4
  ret i32 %v98
}

define internal ptr @allocate(i64 %p0) noinline nounwind {
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
