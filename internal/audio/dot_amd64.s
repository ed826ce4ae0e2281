#include "textflag.h"

// func dotSSE(a, b *float32, n int) float32
// n is a multiple of four.
TEXT ·dotSSE(SB), NOSPLIT, $0-28
	MOVQ a+0(FP), SI
	MOVQ b+8(FP), DI
	MOVQ n+16(FP), CX
	XORPS X0, X0
	XORPS X1, X1
	XORPS X2, X2
	XORPS X3, X3
	SUBQ $16, CX
	JLT  four

sixteen:
	MOVUPS (SI), X4
	MOVUPS (DI), X5
	MOVUPS 16(SI), X6
	MOVUPS 16(DI), X7
	MOVUPS 32(SI), X8
	MOVUPS 32(DI), X9
	MOVUPS 48(SI), X10
	MOVUPS 48(DI), X11
	MULPS  X5, X4
	MULPS  X7, X6
	MULPS  X9, X8
	MULPS  X11, X10
	ADDPS  X4, X0
	ADDPS  X6, X1
	ADDPS  X8, X2
	ADDPS  X10, X3
	ADDQ   $64, SI
	ADDQ   $64, DI
	SUBQ   $16, CX
	JGE    sixteen

four:
	ADDQ $16, CX
	JLE  done

next:
	MOVUPS (SI), X4
	MOVUPS (DI), X5
	MULPS  X5, X4
	ADDPS  X4, X0
	ADDQ   $16, SI
	ADDQ   $16, DI
	SUBQ   $4, CX
	JGT    next

done:
	ADDPS   X1, X0
	ADDPS   X3, X2
	ADDPS   X2, X0
	MOVHLPS X0, X1
	ADDPS   X1, X0
	MOVAPS  X0, X1
	SHUFPS  $1, X1, X1
	ADDSS   X1, X0
	MOVSS   X0, ret+24(FP)
	RET
