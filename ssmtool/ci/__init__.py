"""`ssmtool ci`: every link of the chain checked in one run, with one report and one exit code.

Steps return plain data by kernel; `document` joins them into the one structure that JSON, HTML and markdown render.
"""
