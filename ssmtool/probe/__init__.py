"""Does a card compute what the executor says it does? Every instruction form and every approximation unit, bit by bit.

| module | what it holds |
|---|---|
| variants, inputs, stress | the instruction forms and what they are tried on |
| body | a form through the executor's arithmetic: the reference |
| kernels | forms as PTX |
| trials | what is run: edge inputs, hard float cases, whole binades of the units |
| run | trials on devices, side by side, compared with the reference |
| result | what is kept, as the file to send in |
"""
