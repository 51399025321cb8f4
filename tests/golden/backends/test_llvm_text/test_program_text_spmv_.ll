declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare i64 @llvm.umin.i64(i64, i64)
declare i64 @sparsejit_count(i64)
declare i32 @sparsejit_run(ptr, ptr, i64)
declare void @llvm.prefetch.p0(ptr, i32, i32, i32)

define internal i32 @loops(i64 %p0, i64 %p1, ptr noalias %p2, i64 %p3, ptr noalias %p4, i64 %p5, ptr noalias %p6, i64 %p7, ptr noalias %p8, i64 %p9, ptr noalias %p10, ptr noalias %p11) noinline nounwind {
slots:
  %v1 = alloca i32
  %v11 = alloca [4096 x i8]
  %v15 = alloca [112 x i8]
  %v43 = alloca [4096 x i8]
  %v47 = alloca [256 x i8]
  br label %body
body:
  %v2 = icmp slt i64 0, %p0
  br i1 %v2, label %some, label %none
some:
  %v3 = call i64 @llvm.umin.i64(i64 1, i64 1048576)
  %v4 = mul i64 %v3, %p0
  %v5 = call i64 @sparsejit_count(i64 %v4)
  %v6 = mul i64 %v5, 8
  %v7 = icmp slt i64 %v6, %p0
  %v8 = select i1 %v7, i64 %v6, i64 %p0
  %v9 = icmp sgt i64 %v5, 1
  %v10 = select i1 %v9, i64 %v8, i64 1
  %v12 = icmp sgt i64 %v10, 1
  br i1 %v12, label %several, label %single
single:
  %v13 = call i32 @body_c(ptr %p10, i64 %p0, i64 0, i64 %p0, ptr %v11)
  br label %ran
several:
  %v14 = add nsw i64 %v10, -1
  store ptr %p10, ptr %v15, align 8
  %v16 = getelementptr inbounds i8, ptr %v15, i64 16
  store i64 %p0, ptr %v16, align 8
  %v17 = getelementptr inbounds i8, ptr %v15, i64 32
  store i64 0, ptr %v17, align 8
  %v18 = getelementptr inbounds i8, ptr %v15, i64 48
  store i64 %p0, ptr %v18, align 8
  %v19 = getelementptr inbounds i8, ptr %v15, i64 64
  store i64 %v4, ptr %v19, align 8
  %v20 = getelementptr inbounds i8, ptr %v15, i64 80
  store i64 %v3, ptr %v20, align 8
  %v21 = getelementptr inbounds i8, ptr %v15, i64 96
  store ptr %v11, ptr %v21, align 8
  %v22 = call i32 @sparsejit_run(ptr @work_c, ptr %v15, i64 %v10)
  br label %ran
ran:
  %v23 = phi i32 [ %v13, %single ], [ %v22, %several ]
  %v24 = phi i64 [ 1, %single ], [ %v10, %several ]
  br label %none
none:
  %v25 = icmp slt i64 0, %p0
  br i1 %v25, label %some.1, label %none.1
some.1:
  %v26 = call i64 @llvm.umin.i64(i64 1, i64 1048576)
  %v27 = call i64 @llvm.umin.i64(i64 3, i64 1048576)
  %v28 = mul i64 %v26, %p0
  %v29 = getelementptr inbounds i32, ptr %p2, i64 %p0
  %v30 = load i32, ptr %v29, align 4
  %v31 = sext i32 %v30 to i64
  %v32 = load i32, ptr %p2, align 4
  %v33 = sext i32 %v32 to i64
  %v34 = sub i64 %v31, %v33
  %v35 = mul i64 %v27, %v34
  %v36 = add i64 %v28, %v35
  %v37 = call i64 @sparsejit_count(i64 %v36)
  %v38 = mul i64 %v37, 8
  %v39 = icmp slt i64 %v38, %p0
  %v40 = select i1 %v39, i64 %v38, i64 %p0
  %v41 = icmp sgt i64 %v37, 1
  %v42 = select i1 %v41, i64 %v40, i64 1
  %v44 = icmp sgt i64 %v42, 1
  br i1 %v44, label %several.1, label %single.1
single.1:
  %v45 = call i32 @body_i(ptr %p2, i64 %p3, ptr %p4, i64 %p5, ptr %p6, i64 %p7, ptr %p8, i64 %p9, ptr %p10, i64 %p0, i64 0, i64 %p0, ptr %v43)
  br label %ran.1
several.1:
  %v46 = add nsw i64 %v42, -1
  store ptr %p2, ptr %v47, align 8
  %v48 = getelementptr inbounds i8, ptr %v47, i64 16
  store i64 %p3, ptr %v48, align 8
  %v49 = getelementptr inbounds i8, ptr %v47, i64 32
  store ptr %p4, ptr %v49, align 8
  %v50 = getelementptr inbounds i8, ptr %v47, i64 48
  store i64 %p5, ptr %v50, align 8
  %v51 = getelementptr inbounds i8, ptr %v47, i64 64
  store ptr %p6, ptr %v51, align 8
  %v52 = getelementptr inbounds i8, ptr %v47, i64 80
  store i64 %p7, ptr %v52, align 8
  %v53 = getelementptr inbounds i8, ptr %v47, i64 96
  store ptr %p8, ptr %v53, align 8
  %v54 = getelementptr inbounds i8, ptr %v47, i64 112
  store i64 %p9, ptr %v54, align 8
  %v55 = getelementptr inbounds i8, ptr %v47, i64 128
  store ptr %p10, ptr %v55, align 8
  %v56 = getelementptr inbounds i8, ptr %v47, i64 144
  store i64 %p0, ptr %v56, align 8
  %v57 = getelementptr inbounds i8, ptr %v47, i64 160
  store i64 0, ptr %v57, align 8
  %v58 = getelementptr inbounds i8, ptr %v47, i64 176
  store i64 %p0, ptr %v58, align 8
  %v59 = getelementptr inbounds i8, ptr %v47, i64 192
  store i64 %v36, ptr %v59, align 8
  %v60 = getelementptr inbounds i8, ptr %v47, i64 208
  store i64 %v26, ptr %v60, align 8
  %v61 = getelementptr inbounds i8, ptr %v47, i64 224
  store ptr %v43, ptr %v61, align 8
  %v62 = getelementptr inbounds i8, ptr %v47, i64 240
  store i64 %v27, ptr %v62, align 8
  %v63 = call i32 @sparsejit_run(ptr @work_i, ptr %v47, i64 %v42)
  br label %ran.1
ran.1:
  %v64 = phi i32 [ %v45, %single.1 ], [ %v63, %several.1 ]
  %v65 = phi i64 [ 1, %single.1 ], [ %v42, %several.1 ]
  br label %none.1
none.1:
  ret i32 0
}

define internal i32 @body_c(ptr noalias %p0, i64 %p1, i64 %p2, i64 %p3, ptr noalias %p4) noinline nounwind {
slots:
  %v1 = alloca i32
  br label %body
body:
  %v2 = sub i64 %p3, %p2
  %v3 = icmp slt i64 %p2, %p3
  %v4 = select i1 %v3, i64 %v2, i64 0
  %v5 = getelementptr inbounds double, ptr %p0, i64 %p2
  %v6 = mul nsw i64 %v4, 8
  call void @llvm.memset.p0.i64(ptr %v5, i8 0, i64 %v6, i1 false)
  ret i32 0
}

define internal i64 @cut_c(ptr %p0, i64 %p1, i64 %p2) noinline optnone nounwind {
slots:
  br label %body
body:
  %v1 = getelementptr inbounds i8, ptr %p0, i64 32
  %v2 = load i64, ptr %v1, align 8
  %v3 = getelementptr inbounds i8, ptr %p0, i64 48
  %v4 = load i64, ptr %v3, align 8
  %v5 = getelementptr inbounds i8, ptr %p0, i64 64
  %v6 = load i64, ptr %v5, align 8
  %v7 = getelementptr inbounds i8, ptr %p0, i64 80
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

define internal i32 @work_c(ptr %p0, i64 %p1, i64 %p2) noinline optnone nounwind {
slots:
  br label %body
body:
  %v1 = call i64 @cut_c(ptr %p0, i64 %p1, i64 %p2)
  %v2 = add nsw i64 %p1, 1
  %v3 = call i64 @cut_c(ptr %p0, i64 %v2, i64 %p2)
  %v4 = load ptr, ptr %p0, align 8
  %v5 = getelementptr inbounds i8, ptr %p0, i64 16
  %v6 = load i64, ptr %v5, align 8
  %v7 = icmp eq i64 %p1, 0
  %v8 = getelementptr inbounds i8, ptr %p0, i64 96
  %v9 = load ptr, ptr %v8, align 8
  %v10 = call i32 @body_c(ptr %v4, i64 %v6, i64 %v1, i64 %v3, ptr %v9)
  ret i32 %v10
}

define internal i32 @body_i(ptr noalias %p0, i64 %p1, ptr noalias %p2, i64 %p3, ptr noalias %p4, i64 %p5, ptr noalias %p6, i64 %p7, ptr noalias %p8, i64 %p9, i64 %p10, i64 %p11, ptr noalias %p12) noinline nounwind {
slots:
  %v1 = alloca i32
  br label %body
body:
  %v2 = icmp slt i64 %p10, %p11
  br i1 %v2, label %for, label %end
for:
  %v3 = phi i64 [ %p10, %body ], [ %v36, %end.1 ]
  %v4 = getelementptr inbounds i32, ptr %p0, i64 %v3
  %v5 = load i32, ptr %v4, align 4
  %v6 = sext i32 %v5 to i64
  %v7 = add i64 %v3, 1
  %v8 = getelementptr inbounds i32, ptr %p0, i64 %v7
  %v9 = load i32, ptr %v8, align 4
  %v10 = sext i32 %v9 to i64
  %v11 = mul nsw i64 %v6, 4
  %v12 = getelementptr inbounds i8, ptr %p2, i64 %v11
  %v13 = getelementptr i8, ptr %v12, i64 2048
  call void @llvm.prefetch.p0(ptr %v13, i32 0, i32 3, i32 1)
  %v14 = getelementptr i8, ptr %v12, i64 2112
  call void @llvm.prefetch.p0(ptr %v14, i32 0, i32 3, i32 1)
  %v15 = getelementptr i8, ptr %v12, i64 2176
  call void @llvm.prefetch.p0(ptr %v15, i32 0, i32 3, i32 1)
  %v16 = mul nsw i64 %v6, 8
  %v17 = getelementptr inbounds i8, ptr %p4, i64 %v16
  %v18 = getelementptr i8, ptr %v17, i64 2048
  call void @llvm.prefetch.p0(ptr %v18, i32 0, i32 3, i32 1)
  %v19 = getelementptr i8, ptr %v17, i64 2112
  call void @llvm.prefetch.p0(ptr %v19, i32 0, i32 3, i32 1)
  %v20 = getelementptr i8, ptr %v17, i64 2176
  call void @llvm.prefetch.p0(ptr %v20, i32 0, i32 3, i32 1)
  %v21 = icmp slt i64 %v6, %v10
  br i1 %v21, label %for.1, label %end.1
for.1:
  %v22 = phi i64 [ %v6, %for ], [ %v34, %for.1 ]
  %v23 = getelementptr inbounds i32, ptr %p2, i64 %v22
  %v24 = load i32, ptr %v23, align 4
  %v25 = sext i32 %v24 to i64
  %v26 = getelementptr inbounds double, ptr %p4, i64 %v22
  %v27 = load double, ptr %v26, align 8
  %v28 = getelementptr inbounds double, ptr %p6, i64 %v25
  %v29 = load double, ptr %v28, align 8
  %v30 = fmul contract double %v27, %v29
  %v31 = getelementptr inbounds double, ptr %p8, i64 %v3
  %v32 = load double, ptr %v31, align 8
  %v33 = fadd reassoc contract double %v32, %v30
  store double %v33, ptr %v31, align 8
  %v34 = add nsw i64 %v22, 1
  %v35 = icmp slt i64 %v34, %v10
  br i1 %v35, label %for.1, label %end.1, !llvm.loop !2
end.1:
  %v36 = add nsw i64 %v3, 1
  %v37 = icmp slt i64 %v36, %p11
  br i1 %v37, label %for, label %end
end:
  ret i32 0
}

define internal i64 @cut_i(ptr %p0, i64 %p1, i64 %p2) noinline optnone nounwind {
slots:
  br label %body
body:
  %v1 = getelementptr inbounds i8, ptr %p0, i64 160
  %v2 = load i64, ptr %v1, align 8
  %v3 = getelementptr inbounds i8, ptr %p0, i64 176
  %v4 = load i64, ptr %v3, align 8
  %v5 = getelementptr inbounds i8, ptr %p0, i64 192
  %v6 = load i64, ptr %v5, align 8
  %v7 = getelementptr inbounds i8, ptr %p0, i64 208
  %v8 = load i64, ptr %v7, align 8
  %v9 = load ptr, ptr %p0, align 8
  %v10 = getelementptr inbounds i8, ptr %p0, i64 16
  %v11 = load i64, ptr %v10, align 8
  %v12 = srem i64 %v6, %p2
  %v13 = mul nsw i64 %v12, %p1
  %v14 = sdiv i64 %v13, %p2
  %v15 = sdiv i64 %v6, %p2
  %v16 = mul nsw i64 %v15, %p1
  %v17 = add nsw i64 %v16, %v14
  %v18 = getelementptr inbounds i8, ptr %p0, i64 240
  %v19 = load i64, ptr %v18, align 8
  br label %test
test:
  %v20 = phi i64 [ %v2, %body ], [ %v38, %step ]
  %v21 = phi i64 [ %v4, %body ], [ %v39, %step ]
  %v22 = icmp slt i64 %v20, %v21
  br i1 %v22, label %step, label %done
step:
  %v23 = add nsw i64 %v20, %v21
  %v24 = lshr i64 %v23, 1
  %v25 = sub i64 %v24, %v2
  %v26 = mul i64 %v8, %v25
  %v27 = getelementptr inbounds i32, ptr %v9, i64 %v24
  %v28 = load i32, ptr %v27, align 4
  %v29 = sext i32 %v28 to i64
  %v30 = getelementptr inbounds i32, ptr %v9, i64 %v2
  %v31 = load i32, ptr %v30, align 4
  %v32 = sext i32 %v31 to i64
  %v33 = sub i64 %v29, %v32
  %v34 = mul i64 %v19, %v33
  %v35 = add i64 %v26, %v34
  %v36 = icmp slt i64 %v35, %v17
  %v37 = add nsw i64 %v24, 1
  %v38 = select i1 %v36, i64 %v37, i64 %v20
  %v39 = select i1 %v36, i64 %v21, i64 %v24
  br label %test
done:
  ret i64 %v20
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
  %v8 = load ptr, ptr %v7, align 8
  %v9 = getelementptr inbounds i8, ptr %p0, i64 48
  %v10 = load i64, ptr %v9, align 8
  %v11 = getelementptr inbounds i8, ptr %p0, i64 64
  %v12 = load ptr, ptr %v11, align 8
  %v13 = getelementptr inbounds i8, ptr %p0, i64 80
  %v14 = load i64, ptr %v13, align 8
  %v15 = getelementptr inbounds i8, ptr %p0, i64 96
  %v16 = load ptr, ptr %v15, align 8
  %v17 = getelementptr inbounds i8, ptr %p0, i64 112
  %v18 = load i64, ptr %v17, align 8
  %v19 = getelementptr inbounds i8, ptr %p0, i64 128
  %v20 = load ptr, ptr %v19, align 8
  %v21 = getelementptr inbounds i8, ptr %p0, i64 144
  %v22 = load i64, ptr %v21, align 8
  %v23 = icmp eq i64 %p1, 0
  %v24 = getelementptr inbounds i8, ptr %p0, i64 224
  %v25 = load ptr, ptr %v24, align 8
  %v26 = call i32 @body_i(ptr %v4, i64 %v6, ptr %v8, i64 %v10, ptr %v12, i64 %v14, ptr %v16, i64 %v18, ptr %v20, i64 %v22, i64 %v1, i64 %v3, ptr %v25)
  ret i32 %v26
}

define i32 @entry(ptr %p0) noinline optnone nounwind {
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
