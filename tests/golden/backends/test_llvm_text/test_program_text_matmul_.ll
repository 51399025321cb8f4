
define internal i32 @loops(ptr noalias %p0, i64 %p1, i64 %p2, ptr noalias %p3, i64 %p4, i64 %p5, ptr noalias %p6, i64 %p7, i64 %p8, ptr noalias %p9) nounwind {
slots:
  %v1 = alloca i32
  %v6 = alloca double
  br label %body
body:
  %v2 = icmp slt i64 0, %p1
  br i1 %v2, label %for, label %end
for:
  %v3 = phi i64 [ 0, %body ], [ %v30, %end.1 ]
  %v4 = icmp slt i64 0, %p5
  br i1 %v4, label %for.1, label %end.1
for.1:
  %v5 = phi i64 [ 0, %for ], [ %v28, %end.2 ]
  store double 0x0000000000000000, ptr %v6, align 8
  %v7 = icmp slt i64 0, %p2
  br i1 %v7, label %for.2, label %end.2
for.2:
  %v8 = phi i64 [ 0, %for.1 ], [ %v20, %for.2 ]
  %v9 = mul nsw i64 %v3, %p2
  %v10 = add nsw i64 %v9, %v8
  %v11 = getelementptr inbounds double, ptr %p0, i64 %v10
  %v12 = load double, ptr %v11, align 8
  %v13 = mul nsw i64 %v8, %p5
  %v14 = add nsw i64 %v13, %v5
  %v15 = getelementptr inbounds double, ptr %p3, i64 %v14
  %v16 = load double, ptr %v15, align 8
  %v17 = fmul contract double %v12, %v16
  %v18 = load double, ptr %v6, align 8
  %v19 = fadd reassoc contract double %v18, %v17
  store double %v19, ptr %v6, align 8
  %v20 = add nsw i64 %v8, 1
  %v21 = icmp slt i64 %v20, %p2
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
  %v29 = icmp slt i64 %v28, %p5
  br i1 %v29, label %for.1, label %end.1
end.1:
  %v30 = add nsw i64 %v3, 1
  %v31 = icmp slt i64 %v30, %p1
  br i1 %v31, label %for, label %end
end:
  ret i32 0
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
