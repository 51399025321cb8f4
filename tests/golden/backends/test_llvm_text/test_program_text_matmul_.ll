declare i64 @llvm.umin.i64(i64, i64)
declare i64 @sparsejit_count(i64)
declare i32 @sparsejit_run(ptr, ptr, i64)

define internal i32 @loops(ptr noalias %p0, i64 %p1, i64 %p2, ptr noalias %p3, i64 %p4, i64 %p5, ptr noalias %p6, i64 %p7, i64 %p8, ptr noalias %p9) noinline nounwind {
slots:
  %v1 = alloca i32
  %v21 = alloca [4096 x i8]
  %v25 = alloca [224 x i8]
  br label %body
body:
  %v2 = icmp slt i64 0, %p1
  br i1 %v2, label %some, label %none
some:
  %v3 = icmp sgt i64 %p2, 0
  %v4 = select i1 %v3, i64 %p2, i64 0
  %v5 = mul i64 3, %v4
  %v6 = add i64 1, %v5
  %v7 = add i64 %v6, 1
  %v8 = icmp sgt i64 %p5, 0
  %v9 = select i1 %v8, i64 %p5, i64 0
  %v10 = mul i64 %v7, %v9
  %v11 = icmp sgt i64 %v10, 0
  %v12 = select i1 %v11, i64 %v10, i64 1
  %v13 = call i64 @llvm.umin.i64(i64 %v12, i64 1048576)
  %v14 = mul i64 %v13, %p1
  %v15 = call i64 @sparsejit_count(i64 %v14)
  %v16 = mul i64 %v15, 8
  %v17 = icmp slt i64 %v16, %p1
  %v18 = select i1 %v17, i64 %v16, i64 %p1
  %v19 = icmp sgt i64 %v15, 1
  %v20 = select i1 %v19, i64 %v18, i64 1
  %v22 = icmp sgt i64 %v20, 1
  br i1 %v22, label %several, label %single
single:
  %v23 = call i32 @body_i(ptr %p3, i64 %p4, i64 %p5, ptr %p0, i64 %p1, i64 %p2, ptr %p6, i64 %p7, i64 %p8, i64 0, i64 %p1, ptr %v21)
  br label %ran
several:
  %v24 = add nsw i64 %v20, -1
  store ptr %p3, ptr %v25, align 8
  %v26 = getelementptr inbounds i8, ptr %v25, i64 16
  store i64 %p4, ptr %v26, align 8
  %v27 = getelementptr inbounds i8, ptr %v25, i64 32
  store i64 %p5, ptr %v27, align 8
  %v28 = getelementptr inbounds i8, ptr %v25, i64 48
  store ptr %p0, ptr %v28, align 8
  %v29 = getelementptr inbounds i8, ptr %v25, i64 64
  store i64 %p1, ptr %v29, align 8
  %v30 = getelementptr inbounds i8, ptr %v25, i64 80
  store i64 %p2, ptr %v30, align 8
  %v31 = getelementptr inbounds i8, ptr %v25, i64 96
  store ptr %p6, ptr %v31, align 8
  %v32 = getelementptr inbounds i8, ptr %v25, i64 112
  store i64 %p7, ptr %v32, align 8
  %v33 = getelementptr inbounds i8, ptr %v25, i64 128
  store i64 %p8, ptr %v33, align 8
  %v34 = getelementptr inbounds i8, ptr %v25, i64 144
  store i64 0, ptr %v34, align 8
  %v35 = getelementptr inbounds i8, ptr %v25, i64 160
  store i64 %p1, ptr %v35, align 8
  %v36 = getelementptr inbounds i8, ptr %v25, i64 176
  store i64 %v14, ptr %v36, align 8
  %v37 = getelementptr inbounds i8, ptr %v25, i64 192
  store i64 %v13, ptr %v37, align 8
  %v38 = getelementptr inbounds i8, ptr %v25, i64 208
  store ptr %v21, ptr %v38, align 8
  %v39 = call i32 @sparsejit_run(ptr @work_i, ptr %v25, i64 %v20)
  br label %ran
ran:
  %v40 = phi i32 [ %v23, %single ], [ %v39, %several ]
  %v41 = phi i64 [ 1, %single ], [ %v20, %several ]
  br label %none
none:
  ret i32 0
}

define internal i32 @body_i(ptr noalias %p0, i64 %p1, i64 %p2, ptr noalias %p3, i64 %p4, i64 %p5, ptr noalias %p6, i64 %p7, i64 %p8, i64 %p9, i64 %p10, ptr noalias %p11) noinline nounwind {
slots:
  %v1 = alloca i32
  %v6 = alloca double
  br label %body
body:
  %v2 = icmp slt i64 %p9, %p10
  br i1 %v2, label %for, label %end
for:
  %v3 = phi i64 [ %p9, %body ], [ %v30, %end.1 ]
  %v4 = icmp slt i64 0, %p2
  br i1 %v4, label %for.1, label %end.1
for.1:
  %v5 = phi i64 [ 0, %for ], [ %v28, %end.2 ]
  store double 0x0000000000000000, ptr %v6, align 8
  %v7 = icmp slt i64 0, %p5
  br i1 %v7, label %for.2, label %end.2
for.2:
  %v8 = phi i64 [ 0, %for.1 ], [ %v20, %for.2 ]
  %v9 = mul nsw i64 %v3, %p5
  %v10 = add nsw i64 %v9, %v8
  %v11 = getelementptr inbounds double, ptr %p3, i64 %v10
  %v12 = load double, ptr %v11, align 8
  %v13 = mul nsw i64 %v8, %p2
  %v14 = add nsw i64 %v13, %v5
  %v15 = getelementptr inbounds double, ptr %p0, i64 %v14
  %v16 = load double, ptr %v15, align 8
  %v17 = fmul contract double %v12, %v16
  %v18 = load double, ptr %v6, align 8
  %v19 = fadd reassoc contract double %v18, %v17
  store double %v19, ptr %v6, align 8
  %v20 = add nsw i64 %v8, 1
  %v21 = icmp slt i64 %v20, %p5
  br i1 %v21, label %for.2, label %end.2
end.2:
  %v22 = load double, ptr %v6, align 8
  %v23 = mul nsw i64 %v3, %p8
  %v24 = add nsw i64 %v23, %v5
  %v25 = getelementptr inbounds double, ptr %p6, i64 %v24
  %v26 = load double, ptr %v25, align 8
  %v27 = fadd reassoc contract double %v26, %v22
  store double %v27, ptr %v25, align 8
  %v28 = add nsw i64 %v5, 1
  %v29 = icmp slt i64 %v28, %p2
  br i1 %v29, label %for.1, label %end.1
end.1:
  %v30 = add nsw i64 %v3, 1
  %v31 = icmp slt i64 %v30, %p10
  br i1 %v31, label %for, label %end
end:
  ret i32 0
}

define internal i64 @cut_i(ptr %p0, i64 %p1, i64 %p2) noinline optnone nounwind {
slots:
  br label %body
body:
  %v1 = getelementptr inbounds i8, ptr %p0, i64 144
  %v2 = load i64, ptr %v1, align 8
  %v3 = getelementptr inbounds i8, ptr %p0, i64 160
  %v4 = load i64, ptr %v3, align 8
  %v5 = getelementptr inbounds i8, ptr %p0, i64 176
  %v6 = load i64, ptr %v5, align 8
  %v7 = getelementptr inbounds i8, ptr %p0, i64 192
  %v8 = load i64, ptr %v7, align 8
  %v9 = srem i64 %v6, %p2
  %v10 = mul nsw i64 %v9, %p1
  %v11 = sdiv i64 %v10, %p2
  %v12 = sdiv i64 %v6, %p2
  %v13 = mul nsw i64 %v12, %p1
  %v14 = add nsw i64 %v13, %v11
  %v15 = sub i64 %v4, %v2
  %v16 = srem i64 %v15, %p2
  %v17 = mul nsw i64 %v16, %p1
  %v18 = sdiv i64 %v17, %p2
  %v19 = sdiv i64 %v15, %p2
  %v20 = mul nsw i64 %v19, %p1
  %v21 = add nsw i64 %v20, %v18
  %v22 = add nsw i64 %v2, %v21
  ret i64 %v22
}

define internal i32 @work_i(ptr %p0, i64 %p1, i64 %p2) noinline optnone nounwind {
slots:
  br label %body
body:
  %v1 = call i64 @cut_i(ptr %p0, i64 %p1, i64 %p2)
  %v2 = add nsw i64 %p1, 1
  %v3 = call i64 @cut_i(ptr %p0, i64 %v2, i64 %p2)
  %v4 = load ptr, ptr %p0, align 8
  %v5 = getelementptr inbounds i8, ptr %p0, i64 16
  %v6 = load i64, ptr %v5, align 8
  %v7 = getelementptr inbounds i8, ptr %p0, i64 32
  %v8 = load i64, ptr %v7, align 8
  %v9 = getelementptr inbounds i8, ptr %p0, i64 48
  %v10 = load ptr, ptr %v9, align 8
  %v11 = getelementptr inbounds i8, ptr %p0, i64 64
  %v12 = load i64, ptr %v11, align 8
  %v13 = getelementptr inbounds i8, ptr %p0, i64 80
  %v14 = load i64, ptr %v13, align 8
  %v15 = getelementptr inbounds i8, ptr %p0, i64 96
  %v16 = load ptr, ptr %v15, align 8
  %v17 = getelementptr inbounds i8, ptr %p0, i64 112
  %v18 = load i64, ptr %v17, align 8
  %v19 = getelementptr inbounds i8, ptr %p0, i64 128
  %v20 = load i64, ptr %v19, align 8
  %v21 = icmp eq i64 %p1, 0
  %v22 = getelementptr inbounds i8, ptr %p0, i64 208
  %v23 = load ptr, ptr %v22, align 8
  %v24 = call i32 @body_i(ptr %v4, i64 %v6, i64 %v8, ptr %v10, i64 %v12, i64 %v14, ptr %v16, i64 %v18, i64 %v20, i64 %v1, i64 %v3, ptr %v23)
  ret i32 %v24
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
  %v16 = getelementptr inbounds i8, ptr %v14, i64 8
  %v17 = load i64, ptr %v16, align 8
  %v18 = getelementptr inbounds i8, ptr %p0, i64 16
  %v19 = load ptr, ptr %v18, align 8
  %v20 = getelementptr inbounds i8, ptr %v19, i64 16
  %v21 = load ptr, ptr %v20, align 8
  %v22 = getelementptr inbounds i8, ptr %v19, i64 32
  %v23 = load ptr, ptr %v22, align 8
  %v24 = load i64, ptr %v23, align 8
  %v25 = getelementptr inbounds i8, ptr %v23, i64 8
  %v26 = load i64, ptr %v25, align 8
  %v27 = getelementptr inbounds i8, ptr %p0, i64 24
  %v28 = call i32 @loops(ptr %v3, i64 %v6, i64 %v8, ptr %v12, i64 %v15, i64 %v17, ptr %v21, i64 %v24, i64 %v26, ptr %v27)
  ret i32 %v28
}
