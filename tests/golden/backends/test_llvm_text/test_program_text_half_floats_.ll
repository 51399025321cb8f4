
define internal i32 @loops(ptr noalias %p0, i64 %p1, i16 %p2, ptr noalias %p3, ptr noalias %p4, ptr noalias %p5, ptr noalias %p6) noinline nounwind {
slots:
  %v1 = alloca i32
  br label %body
body:
  br i1 true, label %for, label %end
for:
  %v2 = phi i64 [ 0, %body ], [ %v4, %for ]
  %v3 = getelementptr inbounds i16, ptr %p5, i64 %v2
  store i16 16320, ptr %v3, align 2
  %v4 = add nsw i64 %v2, 1
  %v5 = icmp slt i64 %v4, 2
  br i1 %v5, label %for, label %end
end:
  %v6 = icmp slt i64 0, %p1
  br i1 %v6, label %for.1, label %end.1
for.1:
  %v7 = phi i64 [ 0, %end ], [ %v22, %for.1 ]
  %v8 = getelementptr inbounds i16, ptr %p0, i64 %v7
  %v9 = load i16, ptr %v8, align 2
  %v10 = call float @widen_float16(i16 %v9)
  %v11 = call float @widen_bfloat16(i16 %p2)
  %v12 = fmul float %v10, %v11
  %v13 = call i16 @narrow_float16(float %v12)
  %v14 = getelementptr inbounds i16, ptr %p3, i64 %v7
  store i16 %v13, ptr %v14, align 2
  %v15 = getelementptr inbounds i16, ptr %p0, i64 %v7
  %v16 = load i16, ptr %v15, align 2
  %v17 = call float @widen_float16(i16 %v16)
  %v18 = call float @widen_bfloat16(i16 %p2)
  %v19 = fmul float %v17, %v18
  %v20 = call i16 @narrow_bfloat16(float %v19)
  %v21 = getelementptr inbounds i16, ptr %p4, i64 %v7
  store i16 %v20, ptr %v21, align 2
  %v22 = add nsw i64 %v7, 1
  %v23 = icmp slt i64 %v22, %p1
  br i1 %v23, label %for.1, label %end.1
end.1:
  ret i32 0
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
  %v8 = load i16, ptr %v7, align 8
  %v9 = getelementptr inbounds i8, ptr %p0, i64 24
  %v10 = load ptr, ptr %v9, align 8
  %v11 = getelementptr inbounds i8, ptr %v10, i64 16
  %v12 = load ptr, ptr %v11, align 8
  %v13 = getelementptr inbounds i8, ptr %p0, i64 32
  %v14 = load ptr, ptr %v13, align 8
  %v15 = getelementptr inbounds i8, ptr %v14, i64 16
  %v16 = load ptr, ptr %v15, align 8
  %v17 = getelementptr inbounds i8, ptr %p0, i64 40
  %v18 = load ptr, ptr %v17, align 8
  %v19 = getelementptr inbounds i8, ptr %v18, i64 16
  %v20 = load ptr, ptr %v19, align 8
  %v21 = getelementptr inbounds i8, ptr %p0, i64 48
  %v22 = call i32 @loops(ptr %v3, i64 %v6, i16 %v8, ptr %v12, ptr %v16, ptr %v20, ptr %v21)
  ret i32 %v22
}
