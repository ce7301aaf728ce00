// The exported names. Each is one jump through a table, so arguments stay where the caller put them and the return address is
// the caller's, whatever the parameters are. At first every slot of the table leads to a stub that asks dispatch.cc where to
// go, as the loader's own lazy binding does.

        .set    lockstep_index, 0
        .hidden lockstep_mpi_targets
        .hidden lockstep_mpi_resolve
        .hidden lockstep_mpi_fortran

#if defined(__x86_64__)

#define ENTRY(name)                                                      \
        .globl  name ; .type name, @function ; .p2align 4 ;              \
name: ; .cfi_startproc ;                                                 \
        jmp     *lockstep_mpi_targets+8*lockstep_index(%rip) ;           \
        .cfi_endproc ; .size name, .-name ;                              \
.Llazy_##name: ;                                                         \
        pushq   $lockstep_index ; jmp .Llazy ;                           \
        .set    lockstep_index, lockstep_index+1 ;

#define FORTRAN_ENTRY(name)                                              \
        .globl  name ; .type name, @function ; .p2align 4 ;              \
name: ; .cfi_startproc ;                                                 \
        pushq   $lockstep_index ; .cfi_adjust_cfa_offset 8 ;             \
        jmp     .Lfortran ;                                              \
        .cfi_endproc ; .size name, .-name ;                              \
        .set    lockstep_index, lockstep_index+1 ;

// Keeps what carries arguments: six registers, the static chain, the number of vector arguments. No MPI call takes floating point.
#define SAVE                                                             \
        pushq %rdi ; pushq %rsi ; pushq %rdx ; pushq %rcx ;              \
        pushq %r8 ; pushq %r9 ; pushq %r10 ; pushq %rax
#define RESTORE                                                          \
        popq %rax ; popq %r10 ; popq %r9 ; popq %r8 ;                    \
        popq %rcx ; popq %rdx ; popq %rsi ; popq %rdi

        .text
        .p2align 4
.Llazy:                         // on the stack: index, return address; 16-byte aligned after eight more words
        SAVE
        movq    64(%rsp), %rdi
        call    lockstep_mpi_resolve
        movq    %rax, %r11
        RESTORE
        addq    $8, %rsp
        jmp     *%r11

        .p2align 4
.Lfortran:
        SAVE
        movq    64(%rsp), %rdi
        movq    72(%rsp), %rsi
        call    lockstep_mpi_fortran
        movq    %rax, %r11
        RESTORE
        addq    $8, %rsp
        jmp     *%r11

#elif defined(__aarch64__)

#define ENTRY(name)                                                      \
        .globl  name ; .type name, @function ; .p2align 4 ;              \
name: ; .cfi_startproc ;                                                 \
        adrp    x16, lockstep_mpi_targets+8*lockstep_index ;             \
        ldr     x16, [x16, :lo12:lockstep_mpi_targets+8*lockstep_index] ; \
        br      x16 ;                                                    \
        .cfi_endproc ; .size name, .-name ;                              \
.Llazy_##name: ;                                                         \
        mov     w17, lockstep_index ; b .Llazy ;                         \
        .set    lockstep_index, lockstep_index+1 ;

#define FORTRAN_ENTRY(name)                                              \
        .globl  name ; .type name, @function ; .p2align 4 ;              \
name: ; .cfi_startproc ;                                                 \
        mov     w17, lockstep_index ; b .Lfortran ;                      \
        .cfi_endproc ; .size name, .-name ;                              \
        .set    lockstep_index, lockstep_index+1 ;

#define SAVE                                                             \
        stp x29, x30, [sp, -96]! ; stp x0, x1, [sp, 16] ;                \
        stp x2, x3, [sp, 32] ; stp x4, x5, [sp, 48] ;                    \
        stp x6, x7, [sp, 64] ; str x8, [sp, 80]
#define RESTORE                                                          \
        ldr x8, [sp, 80] ; ldp x6, x7, [sp, 64] ;                        \
        ldp x4, x5, [sp, 48] ; ldp x2, x3, [sp, 32] ;                    \
        ldp x0, x1, [sp, 16] ; ldp x29, x30, [sp], 96

        .text
        .p2align 4
.Llazy:
        SAVE
        mov     w0, w17
        bl      lockstep_mpi_resolve
        mov     x16, x0
        RESTORE
        br      x16

        .p2align 4
.Lfortran:
        SAVE
        mov     w0, w17
        mov     x1, x30
        bl      lockstep_mpi_fortran
        mov     x16, x0
        RESTORE
        br      x16

#else
#error "entries.S knows x86-64 and aarch64"
#endif

#define BOTH(name) ENTRY(MPI_##name) ENTRY(PMPI_##name)
#define MPI_CALL(name, fortran, params, args, ...) BOTH(name)
#define MPI_CALL2(name, fortran, params, args, ...) BOTH(name) BOTH(name##_c)
#define MPI_OPAQUE(name, fortran) BOTH(name)
#define MPI_QUIET(name, fortran) BOTH(name)
#include "mpi/functions.def"
#undef MPI_CALL
#undef MPI_CALL2
#undef MPI_OPAQUE
#undef MPI_QUIET
#undef BOTH

// Fortran: mpi_x_ of both, mpi_x_f08_ of Open MPI, mpi_x_f08ts_ of MPICH. They only note who called; the C function behind
// them is recorded. Three per row, in this order.
        .set    lockstep_index, 0
#define THREE(fortran) FORTRAN_ENTRY(mpi_##fortran##_) FORTRAN_ENTRY(mpi_##fortran##_f08_) FORTRAN_ENTRY(mpi_##fortran##_f08ts_)
#define MPI_CALL(name, fortran, params, args, ...) THREE(fortran)
#define MPI_CALL2(name, fortran, params, args, ...) THREE(fortran)
#define MPI_OPAQUE(name, fortran)
#define MPI_QUIET(name, fortran)
#include "mpi/functions.def"
#undef MPI_CALL
#undef MPI_CALL2
#undef MPI_OPAQUE
#undef MPI_QUIET

        .data
        .p2align 3
        .globl  lockstep_mpi_targets
        .type   lockstep_mpi_targets, @object
lockstep_mpi_targets:
#define BOTH(name) .quad .Llazy_MPI_##name ; .quad .Llazy_PMPI_##name ;
#define MPI_CALL(name, fortran, params, args, ...) BOTH(name)
#define MPI_CALL2(name, fortran, params, args, ...) BOTH(name) BOTH(name##_c)
#define MPI_OPAQUE(name, fortran) BOTH(name)
#define MPI_QUIET(name, fortran) BOTH(name)
#include "mpi/functions.def"
        .size   lockstep_mpi_targets, .-lockstep_mpi_targets

        .section .note.GNU-stack, "", @progbits
