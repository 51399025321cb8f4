declare {i64, i1} @llvm.umul.with.overflow.i64(i64, i64)
declare ptr @malloc(i64)
declare void @free(ptr)

define internal i32 @loops(ptr noalias %p0, i64 %p1, ptr noalias %p2, i64 %p3, ptr noalias %p4, i64 %p5, i64 %p6, ptr noalias %p7, i64 %p8, ptr noalias %p9) nounwind {
slots:
  %v1 = alloca i32
  %v12 = alloca ptr
  store ptr null, ptr %v12, align 8
  %v23 = alloca ptr
  store ptr null, ptr %v23, align 8
  %v34 = alloca ptr
  store ptr null, ptr %v34, align 8
  %v45 = alloca ptr
  store ptr null, ptr %v45, align 8
  br label %body
body:
  %v2 = call {i64, i1} @llvm.umul.with.overflow.i64(i64 8, i64 %p8)
  %v3 = extractvalue {i64, i1} %v2, 0
  %v4 = extractvalue {i64, i1} %v2, 1
  %v5 = or i1 false, %v4
  %v6 = icmp slt i64 %v3, 0
  %v7 = or i1 %v5, %v6
  br i1 %v7, label %leave, label %go_on
leave:
  store i32 1, ptr %v1, align 4
  br label %fail
go_on:
  %v8 = call ptr @malloc(i64 %v3)
  %v9 = icmp eq ptr %v8, null
  %v10 = icmp ne i64 %v3, 0
  %v11 = and i1 %v9, %v10
  br i1 %v11, label %leave.1, label %go_on.1
leave.1:
  store i32 1, ptr %v1, align 4
  br label %fail
go_on.1:
  store ptr %v8, ptr %v12, align 8
  %v13 = call {i64, i1} @llvm.umul.with.overflow.i64(i64 8, i64 %p8)
  %v14 = extractvalue {i64, i1} %v13, 0
  %v15 = extractvalue {i64, i1} %v13, 1
  %v16 = or i1 false, %v15
  %v17 = icmp slt i64 %v14, 0
  %v18 = or i1 %v16, %v17
  br i1 %v18, label %leave.2, label %go_on.2
leave.2:
  store i32 1, ptr %v1, align 4
  br label %fail
go_on.2:
  %v19 = call ptr @malloc(i64 %v14)
  %v20 = icmp eq ptr %v19, null
  %v21 = icmp ne i64 %v14, 0
  %v22 = and i1 %v20, %v21
  br i1 %v22, label %leave.3, label %go_on.3
leave.3:
  store i32 1, ptr %v1, align 4
  br label %fail
go_on.3:
  store ptr %v19, ptr %v23, align 8
  %v24 = call {i64, i1} @llvm.umul.with.overflow.i64(i64 8, i64 %p8)
  %v25 = extractvalue {i64, i1} %v24, 0
  %v26 = extractvalue {i64, i1} %v24, 1
  %v27 = or i1 false, %v26
  %v28 = icmp slt i64 %v25, 0
  %v29 = or i1 %v27, %v28
  br i1 %v29, label %leave.4, label %go_on.4
leave.4:
  store i32 1, ptr %v1, align 4
  br label %fail
go_on.4:
  %v30 = call ptr @malloc(i64 %v25)
  %v31 = icmp eq ptr %v30, null
  %v32 = icmp ne i64 %v25, 0
  %v33 = and i1 %v31, %v32
  br i1 %v33, label %leave.5, label %go_on.5
leave.5:
  store i32 1, ptr %v1, align 4
  br label %fail
go_on.5:
  store ptr %v30, ptr %v34, align 8
  %v35 = call {i64, i1} @llvm.umul.with.overflow.i64(i64 8, i64 %p8)
  %v36 = extractvalue {i64, i1} %v35, 0
  %v37 = extractvalue {i64, i1} %v35, 1
  %v38 = or i1 false, %v37
  %v39 = icmp slt i64 %v36, 0
  %v40 = or i1 %v38, %v39
  br i1 %v40, label %leave.6, label %go_on.6
leave.6:
  store i32 1, ptr %v1, align 4
  br label %fail
go_on.6:
  %v41 = call ptr @malloc(i64 %v36)
  %v42 = icmp eq ptr %v41, null
  %v43 = icmp ne i64 %v36, 0
  %v44 = and i1 %v42, %v43
  br i1 %v44, label %leave.7, label %go_on.7
leave.7:
  store i32 1, ptr %v1, align 4
  br label %fail
go_on.7:
  store ptr %v41, ptr %v45, align 8
  %v46 = icmp slt i64 0, %p8
  br i1 %v46, label %for, label %end
for:
  %v47 = phi i64 [ 0, %go_on.7 ], [ %v61, %for ]
  %v48 = getelementptr inbounds i64, ptr %p7, i64 %v47
  %v49 = load i64, ptr %v48, align 8
  %v50 = call i64 @search_s32(ptr %p0, i64 4, i64 1, i64 %p1, i64 %v49)
  %v51 = getelementptr inbounds i64, ptr %v8, i64 %v47
  store i64 %v50, ptr %v51, align 8
  %v52 = call i64 @search_u16_unordered(ptr %p2, i64 2, i64 1, i64 %p3, i64 %v49)
  %v53 = getelementptr inbounds i64, ptr %v19, i64 %v47
  store i64 %v52, ptr %v53, align 8
  %v54 = mul nsw i64 %p6, 8
  %v55 = call i64 @search_s64(ptr %p4, i64 %v54, i64 1, i64 %p5, i64 %v49)
  %v56 = getelementptr inbounds i64, ptr %v30, i64 %v47
  store i64 %v55, ptr %v56, align 8
  %v57 = getelementptr inbounds i8, ptr %p4, i64 8
  %v58 = mul nsw i64 %p6, 8
  %v59 = call i64 @search_s64_unordered(ptr %v57, i64 %v58, i64 1, i64 %p5, i64 %v49)
  %v60 = getelementptr inbounds i64, ptr %v41, i64 %v47
  store i64 %v59, ptr %v60, align 8
  %v61 = add nsw i64 %v47, 1
  %v62 = icmp slt i64 %v61, %p8
  br i1 %v62, label %for, label %end
end:
  store ptr %v8, ptr %p9, align 8
  %v63 = getelementptr inbounds i8, ptr %p9, i64 8
  store ptr %v19, ptr %v63, align 8
  %v64 = getelementptr inbounds i8, ptr %p9, i64 16
  store ptr %v30, ptr %v64, align 8
  %v65 = getelementptr inbounds i8, ptr %p9, i64 24
  store ptr %v41, ptr %v65, align 8
  %v66 = getelementptr inbounds i8, ptr %p9, i64 32
  store ptr %v8, ptr %v66, align 8
  %v67 = getelementptr inbounds i8, ptr %p9, i64 40
  store i64 %p8, ptr %v67, align 8
  %v68 = getelementptr inbounds i8, ptr %p9, i64 48
  store i64 8, ptr %v68, align 8
  %v69 = getelementptr inbounds i8, ptr %p9, i64 56
  store ptr %v19, ptr %v69, align 8
  %v70 = getelementptr inbounds i8, ptr %p9, i64 64
  store i64 %p8, ptr %v70, align 8
  %v71 = getelementptr inbounds i8, ptr %p9, i64 72
  store i64 8, ptr %v71, align 8
  %v72 = getelementptr inbounds i8, ptr %p9, i64 80
  store ptr %v30, ptr %v72, align 8
  %v73 = getelementptr inbounds i8, ptr %p9, i64 88
  store i64 %p8, ptr %v73, align 8
  %v74 = getelementptr inbounds i8, ptr %p9, i64 96
  store i64 8, ptr %v74, align 8
  %v75 = getelementptr inbounds i8, ptr %p9, i64 104
  store ptr %v41, ptr %v75, align 8
  %v76 = getelementptr inbounds i8, ptr %p9, i64 112
  store i64 %p8, ptr %v76, align 8
  %v77 = getelementptr inbounds i8, ptr %p9, i64 120
  store i64 8, ptr %v77, align 8
  ret i32 0
fail:
  %v78 = load ptr, ptr %v12, align 8
  call void @free(ptr %v78)
  %v79 = load ptr, ptr %v23, align 8
  call void @free(ptr %v79)
  %v80 = load ptr, ptr %v34, align 8
  call void @free(ptr %v80)
  %v81 = load ptr, ptr %v45, align 8
  call void @free(ptr %v81)
  %v82 = load i32, ptr %v1, align 4
  ret i32 %v82
}

define internal i64 @search_s32(ptr %p0, i64 %p1, i64 %p2, i64 %p3, i64 %p4) {
slots:
  br label %body
body:
  br label %test
test:
  %v1 = phi i64 [ %p2, %body ], [ %v12, %step ]
  %v2 = phi i64 [ %p3, %body ], [ %v13, %step ]
  %v3 = icmp slt i64 %v1, %v2
  br i1 %v3, label %step, label %done
step:
  %v4 = add nsw i64 %v1, %v2
  %v5 = lshr i64 %v4, 1
  %v6 = mul nsw i64 %v5, %p1
  %v7 = getelementptr inbounds i8, ptr %p0, i64 %v6
  %v8 = load i32, ptr %v7, align 1
  %v9 = sext i32 %v8 to i64
  %v10 = icmp slt i64 %v9, %p4
  %v11 = add nsw i64 %v5, 1
  %v12 = select i1 %v10, i64 %v11, i64 %v1
  %v13 = select i1 %v10, i64 %v2, i64 %v5
  br label %test
done:
  %v14 = icmp slt i64 %v1, %p3
  br i1 %v14, label %check, label %miss
check:
  %v15 = mul nsw i64 %v1, %p1
  %v16 = getelementptr inbounds i8, ptr %p0, i64 %v15
  %v17 = load i32, ptr %v16, align 1
  %v18 = sext i32 %v17 to i64
  %v19 = icmp eq i64 %v18, %p4
  %v20 = select i1 %v19, i64 %v1, i64 -1
  ret i64 %v20
miss:
  ret i64 -1
}

define internal i64 @search_u16_unordered(ptr %p0, i64 %p1, i64 %p2, i64 %p3, i64 %p4) {
slots:
  br label %body
body:
  br label %test
test:
  %v1 = phi i64 [ %p2, %body ], [ %v8, %after ]
  %v2 = icmp slt i64 %v1, %p3
  br i1 %v2, label %step, label %miss
step:
  %v3 = mul nsw i64 %v1, %p1
  %v4 = getelementptr inbounds i8, ptr %p0, i64 %v3
  %v5 = load i16, ptr %v4, align 1
  %v6 = zext i16 %v5 to i64
  %v7 = icmp eq i64 %v6, %p4
  br i1 %v7, label %hit, label %after
after:
  %v8 = add nsw i64 %v1, 1
  br label %test
hit:
  ret i64 %v1
miss:
  ret i64 -1
}

define internal i64 @search_s64(ptr %p0, i64 %p1, i64 %p2, i64 %p3, i64 %p4) {
slots:
  br label %body
body:
  br label %test
test:
  %v1 = phi i64 [ %p2, %body ], [ %v11, %step ]
  %v2 = phi i64 [ %p3, %body ], [ %v12, %step ]
  %v3 = icmp slt i64 %v1, %v2
  br i1 %v3, label %step, label %done
step:
  %v4 = add nsw i64 %v1, %v2
  %v5 = lshr i64 %v4, 1
  %v6 = mul nsw i64 %v5, %p1
  %v7 = getelementptr inbounds i8, ptr %p0, i64 %v6
  %v8 = load i64, ptr %v7, align 1
  %v9 = icmp slt i64 %v8, %p4
  %v10 = add nsw i64 %v5, 1
  %v11 = select i1 %v9, i64 %v10, i64 %v1
  %v12 = select i1 %v9, i64 %v2, i64 %v5
  br label %test
done:
  %v13 = icmp slt i64 %v1, %p3
  br i1 %v13, label %check, label %miss
check:
  %v14 = mul nsw i64 %v1, %p1
  %v15 = getelementptr inbounds i8, ptr %p0, i64 %v14
  %v16 = load i64, ptr %v15, align 1
  %v17 = icmp eq i64 %v16, %p4
  %v18 = select i1 %v17, i64 %v1, i64 -1
  ret i64 %v18
miss:
  ret i64 -1
}

define internal i64 @search_s64_unordered(ptr %p0, i64 %p1, i64 %p2, i64 %p3, i64 %p4) {
slots:
  br label %body
body:
  br label %test
test:
  %v1 = phi i64 [ %p2, %body ], [ %v7, %after ]
  %v2 = icmp slt i64 %v1, %p3
  br i1 %v2, label %step, label %miss
step:
  %v3 = mul nsw i64 %v1, %p1
  %v4 = getelementptr inbounds i8, ptr %p0, i64 %v3
  %v5 = load i64, ptr %v4, align 1
  %v6 = icmp eq i64 %v5, %p4
  br i1 %v6, label %hit, label %after
after:
  %v7 = add nsw i64 %v1, 1
  br label %test
hit:
  ret i64 %v1
miss:
  ret i64 -1
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
  %v21 = getelementptr inbounds i8, ptr %v19, i64 8
  %v22 = load i64, ptr %v21, align 8
  %v23 = getelementptr inbounds i8, ptr %p0, i64 24
  %v24 = load ptr, ptr %v23, align 8
  %v25 = getelementptr inbounds i8, ptr %v24, i64 16
  %v26 = load ptr, ptr %v25, align 8
  %v27 = getelementptr inbounds i8, ptr %v24, i64 32
  %v28 = load ptr, ptr %v27, align 8
  %v29 = load i64, ptr %v28, align 8
  %v30 = getelementptr inbounds i8, ptr %p0, i64 32
  %v31 = call i32 @loops(ptr %v3, i64 %v6, ptr %v10, i64 %v13, ptr %v17, i64 %v20, i64 %v22, ptr %v26, i64 %v29, ptr %v30)
  ret i32 %v31
}
