"""What a kernel is before any code is made for it: calls flattened, registers split, blocks ordered, shapes known.

| module | what it finds |
|---|---|
| flatten | one list of instructions: `.func` bodies in place of their calls, names resolved to memory places |
| webs | registers split into variables: parts of a register's life that never meet are different ones |
| order | the order in which blocks are run so that lanes meet again |
| schedule | which blocks may have lanes waiting while another runs, hence which writes must keep old lanes |
| shapes | which variables are the same in all lanes, which grow by a constant from lane to lane |
| kernel | all of it for one entry and one block shape |
"""
