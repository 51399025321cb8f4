
define internal i32 @loops(i64 %p0, i64 %p1, ptr noalias %p2, i64 %p3, ptr noalias %p4, i64 %p5, ptr noalias %p6, i64 %p7, ptr noalias %p8, i64 %p9, ptr noalias %p10, ptr noalias %p11) nounwind {
slots:
  %v1 = alloca i32
  br label %body
body:
  %v2 = icmp slt i64 0, %p0
  br i1 %v2, label %for, label %end
for:
  %v3 = phi i64 [ 0, %body ], [ %v5, %for ]
  %v4 = getelementptr inbounds double, ptr %p10, i64 %v3
  store double 0x0000000000000000, ptr %v4, align 8
  %v5 = add nsw i64 %v3, 1
  %v6 = icmp slt i64 %v5, %p0
  br i1 %v6, label %for, label %end
end:
  %v7 = icmp slt i64 0, %p0
  br i1 %v7, label %for.1, label %end.1
for.1:
  %v8 = phi i64 [ 0, %end ], [ %v31, %end.2 ]
  %v9 = getelementptr inbounds i32, ptr %p2, i64 %v8
  %v10 = load i32, ptr %v9, align 4
  %v11 = sext i32 %v10 to i64
  %v12 = add i64 %v8, 1
  %v13 = getelementptr inbounds i32, ptr %p2, i64 %v12
  %v14 = load i32, ptr %v13, align 4
  %v15 = sext i32 %v14 to i64
  %v16 = icmp slt i64 %v11, %v15
  br i1 %v16, label %for.2, label %end.2
for.2:
  %v17 = phi i64 [ %v11, %for.1 ], [ %v29, %for.2 ]
  %v18 = getelementptr inbounds i32, ptr %p4, i64 %v17
  %v19 = load i32, ptr %v18, align 4
  %v20 = sext i32 %v19 to i64
  %v21 = getelementptr inbounds double, ptr %p6, i64 %v17
  %v22 = load double, ptr %v21, align 8
  %v23 = getelementptr inbounds double, ptr %p8, i64 %v20
  %v24 = load double, ptr %v23, align 8
  %v25 = fmul contract double %v22, %v24
  %v26 = getelementptr inbounds double, ptr %p10, i64 %v8
  %v27 = load double, ptr %v26, align 8
  %v28 = fadd reassoc contract double %v27, %v25
  store double %v28, ptr %v26, align 8
  %v29 = add nsw i64 %v17, 1
  %v30 = icmp slt i64 %v29, %v15
  br i1 %v30, label %for.2, label %end.2, !llvm.loop !2
end.2:
  %v31 = add nsw i64 %v8, 1
  %v32 = icmp slt i64 %v31, %p0
  br i1 %v32, label %for.1, label %end.1
end.1:
  ret i32 0
}

define i32 @entry(ptr %p0) nounwind {
slots:
  br label %body
body:
  %v1 = load i64, ptr %p0, align 8
  %v2 = getelementptr inbounds i8, ptr %p0, i64 16
  %v3 = load i64, ptr %v2, align 8
  %v4 = getelementptr inbounds i8, ptr %p0, i64 32
  %v5 = load ptr, ptr %v4, align 8
  %v6 = getelementptr inbounds i8, ptr %v5, i64 16
  %v7 = load ptr, ptr %v6, align 8
  %v8 = getelementptr inbounds i8, ptr %v5, i64 32
  %v9 = load ptr, ptr %v8, align 8
  %v10 = load i64, ptr %v9, align 8
  %v11 = getelementptr inbounds i8, ptr %p0, i64 40
  %v12 = load ptr, ptr %v11, align 8
  %v13 = getelementptr inbounds i8, ptr %v12, i64 16
  %v14 = load ptr, ptr %v13, align 8
  %v15 = getelementptr inbounds i8, ptr %v12, i64 32
  %v16 = load ptr, ptr %v15, align 8
  %v17 = load i64, ptr %v16, align 8
  %v18 = getelementptr inbounds i8, ptr %p0, i64 48
  %v19 = load ptr, ptr %v18, align 8
  %v20 = getelementptr inbounds i8, ptr %v19, i64 16
  %v21 = load ptr, ptr %v20, align 8
  %v22 = getelementptr inbounds i8, ptr %v19, i64 32
  %v23 = load ptr, ptr %v22, align 8
  %v24 = load i64, ptr %v23, align 8
  %v25 = getelementptr inbounds i8, ptr %p0, i64 56
  %v26 = load ptr, ptr %v25, align 8
  %v27 = getelementptr inbounds i8, ptr %v26, i64 16
  %v28 = load ptr, ptr %v27, align 8
  %v29 = getelementptr inbounds i8, ptr %v26, i64 32
  %v30 = load ptr, ptr %v29, align 8
  %v31 = load i64, ptr %v30, align 8
  %v32 = getelementptr inbounds i8, ptr %p0, i64 64
  %v33 = load ptr, ptr %v32, align 8
  %v34 = getelementptr inbounds i8, ptr %v33, i64 16
  %v35 = load ptr, ptr %v34, align 8
  %v36 = getelementptr inbounds i8, ptr %p0, i64 72
  %v37 = call i32 @loops(i64 %v1, i64 %v3, ptr %v7, i64 %v10, ptr %v14, i64 %v17, ptr %v21, i64 %v24, ptr %v28, i64 %v31, ptr %v35, ptr %v36)
  ret i32 %v37
}

!0 = !{!"llvm.loop.vectorize.width", i32 1}
!1 = !{!"llvm.loop.interleave.count", i32 4}
!2 = distinct !{!2, !0, !1}
