"""The rules of `ssmtool.golden.mistakes`, by family. Class names say what is done; `mistakes` says it in words."""
