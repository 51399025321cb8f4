declare {i64, i1} @llvm.umul.with.overflow.i64(i64, i64)
declare ptr @malloc(i64)
declare void @free(ptr)

define internal i32 @loops(ptr noalias %p0, i64 %p1, i16 %p2, ptr noalias %p3, ptr noalias %p4) nounwind {
slots:
  %v1 = alloca i32
  %v12 = alloca ptr
  store ptr null, ptr %v12, align 8
  %v23 = alloca ptr
  store ptr null, ptr %v23, align 8
  br label %body
body:
  %v2 = call {i64, i1} @llvm.umul.with.overflow.i64(i64 2, i64 %p1)
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
  %v13 = call {i64, i1} @llvm.umul.with.overflow.i64(i64 2, i64 %p1)
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
  %v24 = icmp slt i64 0, 2
  br i1 %v24, label %for, label %end
for:
  %v25 = phi i64 [ 0, %go_on.3 ], [ %v27, %for ]
  %v26 = getelementptr inbounds i16, ptr %p3, i64 %v25
  store i16 16320, ptr %v26, align 2
  %v27 = add nsw i64 %v25, 1
  %v28 = icmp slt i64 %v27, 2
  br i1 %v28, label %for, label %end
end:
  %v29 = icmp slt i64 0, %p1
  br i1 %v29, label %for.1, label %end.1
for.1:
  %v30 = phi i64 [ 0, %end ], [ %v45, %for.1 ]
  %v31 = getelementptr inbounds i16, ptr %p0, i64 %v30
  %v32 = load i16, ptr %v31, align 2
  %v33 = call float @widen_float16(i16 %v32)
  %v34 = call float @widen_bfloat16(i16 %p2)
  %v35 = fmul float %v33, %v34
  %v36 = call i16 @narrow_float16(float %v35)
  %v37 = getelementptr inbounds i16, ptr %v8, i64 %v30
  store i16 %v36, ptr %v37, align 2
  %v38 = getelementptr inbounds i16, ptr %p0, i64 %v30
  %v39 = load i16, ptr %v38, align 2
  %v40 = call float @widen_float16(i16 %v39)
  %v41 = call float @widen_bfloat16(i16 %p2)
  %v42 = fmul float %v40, %v41
  %v43 = call i16 @narrow_bfloat16(float %v42)
  %v44 = getelementptr inbounds i16, ptr %v19, i64 %v30
  store i16 %v43, ptr %v44, align 2
  %v45 = add nsw i64 %v30, 1
  %v46 = icmp slt i64 %v45, %p1
  br i1 %v46, label %for.1, label %end.1
end.1:
  store ptr %v8, ptr %p4, align 8
  %v47 = getelementptr inbounds i8, ptr %p4, i64 8
  store ptr %v19, ptr %v47, align 8
  %v48 = getelementptr inbounds i8, ptr %p4, i64 16
  store ptr %v8, ptr %v48, align 8
  %v49 = getelementptr inbounds i8, ptr %p4, i64 24
  store i64 %p1, ptr %v49, align 8
  %v50 = getelementptr inbounds i8, ptr %p4, i64 32
  store i64 2, ptr %v50, align 8
  %v51 = getelementptr inbounds i8, ptr %p4, i64 40
  store ptr %v19, ptr %v51, align 8
  %v52 = getelementptr inbounds i8, ptr %p4, i64 48
  store i64 %p1, ptr %v52, align 8
  %v53 = getelementptr inbounds i8, ptr %p4, i64 56
  store i64 2, ptr %v53, align 8
  ret i32 0
fail:
  %v54 = load ptr, ptr %v12, align 8
  call void @free(ptr %v54)
  %v55 = load ptr, ptr %v23, align 8
  call void @free(ptr %v55)
  %v56 = load i32, ptr %v1, align 4
  ret i32 %v56
}

define internal float @widen_float16(i16 %p0) alwaysinline {
slots:
  br label %body
body:
  %v1 = zext i16 %p0 to i32
  %v2 = and i32 %v1, 32768
  %v3 = shl i32 %v2, 16
  %v4 = and i32 %v1, 32767
  %v5 = shl i32 %v4, 13
  %v6 = bitcast i32 %v5 to float
  %v7 = fmul float %v6, 0x46F0000000000000
  %v8 = bitcast float %v7 to i32
  %v9 = icmp uge i32 %v5, 260046848
  %v10 = or i32 %v5, 2139095040
  %v11 = select i1 %v9, i32 %v10, i32 %v8
  %v12 = or i32 %v11, %v3
  %v13 = bitcast i32 %v12 to float
  ret float %v13
}

define internal float @widen_bfloat16(i16 %p0) alwaysinline {
slots:
  br label %body
body:
  %v1 = zext i16 %p0 to i32
  %v2 = shl i32 %v1, 16
  %v3 = bitcast i32 %v2 to float
  ret float %v3
}

define internal i16 @narrow_float16(float %p0) alwaysinline {
slots:
  br label %body
body:
  %v1 = bitcast float %p0 to i32
  %v2 = lshr i32 %v1, 16
  %v3 = and i32 %v2, 32768
  %v4 = and i32 %v1, 2147483647
  %v5 = lshr i32 %v4, 13
  %v6 = and i32 %v5, 1
  %v7 = add i32 %v6, -939520001
  %v8 = add i32 %v4, %v7
  %v9 = lshr i32 %v8, 13
  %v10 = bitcast i32 %v4 to float
  %v11 = fadd float %v10, 0x3FE0000000000000
  %v12 = bitcast float %v11 to i32
  %v13 = sub i32 %v12, 1056964608
  %v14 = lshr i32 %v4, 13
  %v15 = and i32 %v14, 1023
  %v16 = icmp ugt i32 %v4, 2139095040
  %v17 = or i32 %v15, 32256
  %v18 = select i1 %v16, i32 %v17, i32 31744
  %v19 = icmp ult i32 %v4, 947912704
  %v20 = select i1 %v19, i32 %v13, i32 %v9
  %v21 = icmp uge i32 %v4, 1199570944
  %v22 = select i1 %v21, i32 %v18, i32 %v20
  %v23 = or i32 %v22, %v3
  %v24 = trunc i32 %v23 to i16
  ret i16 %v24
}

define internal i16 @narrow_bfloat16(float %p0) alwaysinline {
slots:
  br label %body
body:
  %v1 = bitcast float %p0 to i32
  %v2 = lshr i32 %v1, 16
  %v3 = and i32 %v2, 1
  %v4 = add i32 %v3, 32767
  %v5 = add i32 %v1, %v4
  %v6 = lshr i32 %v5, 16
  %v7 = lshr i32 %v1, 16
  %v8 = and i32 %v7, 32768
  %v9 = fcmp uno float %p0, %p0
  %v10 = or i32 %v8, 32704
  %v11 = select i1 %v9, i32 %v10, i32 %v6
  %v12 = trunc i32 %v11 to i16
  ret i16 %v12
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
  %v8 = load i16, ptr %v7, align 8
  %v9 = getelementptr inbounds i8, ptr %p0, i64 24
  %v10 = load ptr, ptr %v9, align 8
  %v11 = getelementptr inbounds i8, ptr %v10, i64 16
  %v12 = load ptr, ptr %v11, align 8
  %v13 = getelementptr inbounds i8, ptr %p0, i64 32
  %v14 = call i32 @loops(ptr %v3, i64 %v6, i16 %v8, ptr %v12, ptr %v13)
  ret i32 %v14
}
