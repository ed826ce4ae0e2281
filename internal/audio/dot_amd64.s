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

DATA squashing<>+0(SB)/4, $0x80000000  // the sign
DATA squashing<>+4(SB)/4, $0xc2ae0000  // -87
DATA squashing<>+8(SB)/4, $0x42b00000  // 88
DATA squashing<>+12(SB)/4, $0x3fb8aa3b // log2(e)
DATA squashing<>+16(SB)/4, $0x3f317218 // ln(2)
DATA squashing<>+20(SB)/4, $0x3ab60b61 // 1/720
DATA squashing<>+24(SB)/4, $0x3c088889 // 1/120
DATA squashing<>+28(SB)/4, $0x3d2aaaab // 1/24
DATA squashing<>+32(SB)/4, $0x3e2aaaab // 1/6
DATA squashing<>+36(SB)/4, $0x3f000000 // 1/2
DATA squashing<>+40(SB)/4, $0x3f800000 // 1
DATA squashing<>+44(SB)/4, $127
GLOBL squashing<>(SB), RODATA, $48

#define CONSTANT(at, to) \
	MOVSS  squashing<>+at(SB), to \
	SHUFPS $0, to, to

// func squashSSE(x *float32, n int)
// The same as squash, for four values at a time. n is a multiple of four.
TEXT ·squashSSE(SB), NOSPLIT, $0-16
	MOVQ x+0(FP), SI
	MOVQ n+8(FP), CX
	CONSTANT(12, X5)
	CONSTANT(16, X6)
	CONSTANT(20, X7)
	CONSTANT(24, X8)
	CONSTANT(28, X9)
	CONSTANT(32, X10)
	CONSTANT(36, X11)
	CONSTANT(40, X12)
	CONSTANT(44, X13)
	CONSTANT(4, X14)
	CONSTANT(8, X15)
	CONSTANT(0, X4)
	JMP  more

four:
	MOVUPS   (SI), X0
	XORPS    X4, X0
	MAXPS    X14, X0
	MINPS    X15, X0
	MOVAPS   X0, X1
	MULPS    X5, X1
	CVTPS2PL X1, X1  // times 2 to the power of this
	CVTPL2PS X1, X2
	MULPS    X6, X2
	SUBPS    X2, X0  // the rest
	MOVAPS   X7, X2
	MULPS    X0, X2
	ADDPS    X8, X2
	MULPS    X0, X2
	ADDPS    X9, X2
	MULPS    X0, X2
	ADDPS    X10, X2
	MULPS    X0, X2
	ADDPS    X11, X2
	MULPS    X0, X2
	ADDPS    X12, X2
	MULPS    X0, X2
	ADDPS    X12, X2
	PADDL    X13, X1
	PSLLL    $23, X1
	MULPS    X1, X2
	ADDPS    X12, X2
	MOVAPS   X12, X3
	DIVPS    X2, X3
	MOVUPS   X3, (SI)
	ADDQ     $16, SI

more:
	SUBQ $4, CX
	JGE  four
	RET
