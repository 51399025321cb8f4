
define internal i32 @loops(ptr noalias %p0, i64 %p1, ptr noalias %p2, i64 %p3, ptr noalias %p4, i64 %p5, i64 %p6, ptr noalias %p7, i64 %p8, ptr noalias %p9, ptr noalias %p10, ptr noalias %p11, ptr noalias %p12, ptr noalias %p13) noinline nounwind {
slots:
  %v1 = alloca i32
  br label %body
body:
  %v2 = icmp slt i64 0, %p8
  br i1 %v2, label %for, label %end
for:
  %v3 = phi i64 [ 0, %body ], [ %v17, %for ]
  %v4 = getelementptr inbounds i64, ptr %p7, i64 %v3
  %v5 = load i64, ptr %v4, align 8
  %v6 = call i64 @search_s32(ptr %p0, i64 4, i64 1, i64 %p1, i64 %v5)
  %v7 = getelementptr inbounds i64, ptr %p9, i64 %v3
  store i64 %v6, ptr %v7, align 8
  %v8 = call i64 @search_u16_unordered(ptr %p2, i64 2, i64 1, i64 %p3, i64 %v5)
  %v9 = getelementptr inbounds i64, ptr %p10, i64 %v3
  store i64 %v8, ptr %v9, align 8
  %v10 = mul nsw i64 %p6, 8
  %v11 = call i64 @search_s64(ptr %p4, i64 %v10, i64 1, i64 %p5, i64 %v5)
  %v12 = getelementptr inbounds i64, ptr %p11, i64 %v3
  store i64 %v11, ptr %v12, align 8
  %v13 = getelementptr inbounds i8, ptr %p4, i64 8
  %v14 = mul nsw i64 %p6, 8
  %v15 = call i64 @search_s64_unordered(ptr %v13, i64 %v14, i64 1, i64 %p5, i64 %v5)
  %v16 = getelementptr inbounds i64, ptr %p12, i64 %v3
  store i64 %v15, ptr %v16, align 8
  %v17 = add nsw i64 %v3, 1
  %v18 = icmp slt i64 %v17, %p8
  br i1 %v18, label %for, label %end
end:
  ret i32 0
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
  %v31 = load ptr, ptr %v30, align 8
  %v32 = getelementptr inbounds i8, ptr %v31, i64 16
  %v33 = load ptr, ptr %v32, align 8
  %v34 = getelementptr inbounds i8, ptr %p0, i64 40
  %v35 = load ptr, ptr %v34, align 8
  %v36 = getelementptr inbounds i8, ptr %v35, i64 16
  %v37 = load ptr, ptr %v36, align 8
  %v38 = getelementptr inbounds i8, ptr %p0, i64 48
  %v39 = load ptr, ptr %v38, align 8
  %v40 = getelementptr inbounds i8, ptr %v39, i64 16
  %v41 = load ptr, ptr %v40, align 8
  %v42 = getelementptr inbounds i8, ptr %p0, i64 56
  %v43 = load ptr, ptr %v42, align 8
  %v44 = getelementptr inbounds i8, ptr %v43, i64 16
  %v45 = load ptr, ptr %v44, align 8
  %v46 = getelementptr inbounds i8, ptr %p0, i64 64
  %v47 = call i32 @loops(ptr %v3, i64 %v6, ptr %v10, i64 %v13, ptr %v17, i64 %v20, i64 %v22, ptr %v26, i64 %v29, ptr %v33, ptr %v37, ptr %v41, ptr %v45, ptr %v46)
  ret i32 %v47
}
