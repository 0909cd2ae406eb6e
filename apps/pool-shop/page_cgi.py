#!/usr/bin/python3
"""The page as a CGI program: Python starts, imports, connects, answers and ends for each request."""

from wsgiref.handlers import CGIHandler

from page import application

CGIHandler().run(application)
