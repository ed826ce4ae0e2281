#include "textflag.h"

// func rowsSSE(out, x, rows *float32, n, count, step int)
// out[i] is the product of x and the first n values of row i, which begins at i times step. n is a multiple of four.
TEXT ·rowsSSE(SB), NOSPLIT, $0-48
	MOVQ out+0(FP), DX
	MOVQ rows+16(FP), DI
	MOVQ count+32(FP), R8
	MOVQ step+40(FP), R9
	SHLQ $2, R9
	SUBQ $1, R8
	JLT  over

row:
	MOVQ x+8(FP), SI
	MOVQ DI, BX
	MOVQ n+24(FP), CX
	XORPS X0, X0
	XORPS X1, X1
	XORPS X2, X2
	XORPS X3, X3
	SUBQ $16, CX
	JLT  few

many:
	MOVUPS (SI), X4
	MOVUPS (BX), X5
	MOVUPS 16(SI), X6
	MOVUPS 16(BX), X7
	MOVUPS 32(SI), X8
	MOVUPS 32(BX), X9
	MOVUPS 48(SI), X10
	MOVUPS 48(BX), X11
	MULPS  X5, X4
	MULPS  X7, X6
	MULPS  X9, X8
	MULPS  X11, X10
	ADDPS  X4, X0
	ADDPS  X6, X1
	ADDPS  X8, X2
	ADDPS  X10, X3
	ADDQ   $64, SI
	ADDQ   $64, BX
	SUBQ   $16, CX
	JGE    many

few:
	ADDQ $16, CX
	JLE  sum

each:
	MOVUPS (SI), X4
	MOVUPS (BX), X5
	MULPS  X5, X4
	ADDPS  X4, X0
	ADDQ   $16, SI
	ADDQ   $16, BX
	SUBQ   $4, CX
	JGT    each

sum:
	ADDPS   X1, X0
	ADDPS   X3, X2
	ADDPS   X2, X0
	MOVHLPS X0, X1
	ADDPS   X1, X0
	MOVAPS  X0, X1
	SHUFPS  $1, X1, X1
	ADDSS   X1, X0
	MOVSS   X0, (DX)
	ADDQ    $4, DX
	ADDQ    R9, DI
	SUBQ    $1, R8
	JGE     row

over:
	RET
