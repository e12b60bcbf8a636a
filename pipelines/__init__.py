"""The Beam pipelines and the ``beam`` command; no other folder imports apache_beam.

A pipeline's module has its options and one chain of labelled transforms.  The transforms call plain functions
of corpus/ and vocab/.
"""
